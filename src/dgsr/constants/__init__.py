"""Fitted constants: scale and offset in closed form, Levenberg-Marquardt for those inside a program."""
