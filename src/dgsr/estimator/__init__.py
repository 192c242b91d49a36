"""The scikit-learn interface of the package: the estimator, its methods after a fit, and saved fits."""
