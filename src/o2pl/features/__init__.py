"""Feature maps: composable, each with its state as a separate value."""

from o2pl.features.basic import Chain, Intercept
from o2pl.features.fourier import Fourier
from o2pl.features.hashing import Hashed
from o2pl.features.quadratic import Quadratic
from o2pl.features.settled import Settled
from o2pl.features.standardise import Standardise
from o2pl.features.user_items import UserItems

__all__ = ["Chain", "Fourier", "Hashed", "Intercept", "Quadratic", "Settled", "Standardise", "UserItems"]
