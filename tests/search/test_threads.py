"""The limit of one thread, which is of the whole process, with fits in several threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from dgsr.search import one_thread

pytestmark = pytest.mark.search


def test_fits_that_overlap_leave_the_number_of_threads_that_was_there():
    both_are_in, first_is_out = threading.Event(), threading.Event()

    def first():
        with one_thread():
            assert both_are_in.wait(60)
        first_is_out.set()

    def second():
        with one_thread():
            both_are_in.set()
            assert first_is_out.wait(60)
            return torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with ThreadPoolExecutor(2) as pool:
            fits = [pool.submit(first), pool.submit(second)]
            assert [fit.result() for fit in fits] == [None, 1]
        with ThreadPoolExecutor(1) as pool:  # a new thread has the number of the process
            assert pool.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(before)
