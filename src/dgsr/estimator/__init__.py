"""The scikit-learn face of the package: the estimator, what a fitted one can do, and fits as files."""
