"""Published memory packages, run as they come on the texts of a data set, for ``memlab score`` to score."""
