"""Offers as action sets: one row of numbers per user, and one per allowed item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from o2pl import _core
from o2pl.data.contexts import ActionSets
from o2pl.data.frames import is_frame
from o2pl.data.kinds import as_offer
from o2pl.data.offers import NO_ID, Offer
from o2pl.errors import InvalidInput
from o2pl.protocols import Floats
from o2pl.validation import check_context

NOBODY = np.empty(0, np.float32)


class OfferRows(NamedTuple):
    """One offer as rows."""

    user: Floats  # [d_user]; empty: no user
    items: Floats  # of the allowed items, [K, d_item]
    offer: Offer


def read_offer(
    context: object,
    user_row: Callable[[Any], Floats],
    item_rows: Callable[[Any], Floats],
    shared: int | None = None,
) -> OfferRows:
    """Return the rows of an offer, of a pair (user, items), or of items alone. shared: number of user features."""
    offer = as_offer(context)
    if offer is None:
        if not (isinstance(context, np.ndarray) and context.ndim == 2) and not is_frame(context):
            raise InvalidInput(
                f"found a {type(context).__name__}, expected a user and items: act(user, items), or (user, items)"
                " as a context"
            )
        offer = Offer(None, context)
    user = NOBODY if offer.user is None else user_row(offer.user)
    if shared is not None and len(user) != shared:
        raise InvalidInput(f"found {len(user)} features of the user, expected {shared}")
    items = item_rows(offer.items)
    return OfferRows(user, items if offer.kept is None else items[offer.kept], offer)


def user_row_of_offer(user: object) -> Floats:
    """Return a user's features, which are numbers."""
    try:
        return check_context(user).copy()
    except InvalidInput as error:
        raise InvalidInput(f"user: {error}") from None


def item_rows_of_offer(items: Any, width: int | None = None) -> Floats:
    """Return the features of items, which are numbers. [K, d_item]"""
    try:
        with np.errstate(over="ignore"):
            rows = np.array(items, np.float32)
    except InvalidInput as error:
        raise InvalidInput(f"items: {error}") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"items: expected numbers, one row per item ({error})") from None
    if rows.ndim != 2 or rows.shape[1] == 0 or (width is not None and rows.shape[1] != width):
        raise InvalidInput(f"items: found shape {rows.shape}, expected (items, {width or 'features'})")
    if not _core.all_finite(rows.reshape(-1)):
        item, column = (int(at[0]) for at in np.nonzero(~np.isfinite(rows)))
        raise InvalidInput(
            f"item {item}, feature {column}: found {items[item][column]}, expected a finite number"
            " (of magnitude below 3e38, the range of float32)"
        )
    return rows


def sets_of_offers(
    contexts: Sequence[Any],
    read: Callable[[Any], OfferRows] = lambda context: read_offer(context, user_row_of_offer, item_rows_of_offer),
) -> ActionSets:
    """Return offers as action sets; all have the same number of features."""
    made: list[OfferRows] = []
    for row, context in enumerate(contexts):
        try:
            one = read(context)
            if made and (len(one.user), one.items.shape[1]) != (len(made[0].user), made[0].items.shape[1]):
                raise InvalidInput(
                    f"found {len(one.user)} features of the user and {one.items.shape[1]} of an item,"
                    f" expected {len(made[0].user)} and {made[0].items.shape[1]}, as in the first"
                )
        except InvalidInput as error:
            raise InvalidInput(f"offer {row}: {error}") from None
        made.append(one)
    return _stacked_offer_rows(made)


def _stacked_offer_rows(made: list[OfferRows]) -> ActionSets:
    ids = slots = None
    if any(one.offer.ids is not None for one in made):
        ids = np.concatenate(
            [np.full(len(items), NO_ID) if (codes := offer.codes) is None else codes for _, items, offer in made]
        )
    if any(one.offer.slot is not None for one in made):
        slots = np.array([one.offer.slot or 0 for one in made])
    offsets = np.cumsum([0] + [len(one.items) for one in made])
    items, users = np.concatenate([one.items for one in made]), np.stack([one.user for one in made])
    return ActionSets(items, offsets, users, ids, slots)
