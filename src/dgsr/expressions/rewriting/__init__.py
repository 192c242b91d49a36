"""One formula written in other ways: as polynomials, in normal form, expanded and merged."""
