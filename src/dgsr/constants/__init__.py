"""Fits of constants: scale and offset in closed form, those inside a program by Levenberg-Marquardt."""
