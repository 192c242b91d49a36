"""Finders of laws that are linear in all their constants, or in all but one."""
