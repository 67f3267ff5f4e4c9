"""The tables of the service. Decisions and rewards are only added; everything else can be recomputed from them.

    decisions ─┬─ rewards, activations     written by the servers, on disk before a call is answered
               └─ outcomes                 written by the trainer: the reward that a decision is learned with
    outcomes → models                      written by the trainer: versions of the acting policy
    outcomes → trainings, cuts             written by the trainer: in which batches it learned
    imports → trainings                    learners from files, with which trainings begin
    decisions, outcomes → minutes          written by the trainer: sums for the dashboard

Ids grow in the order in which rows become visible, so reading "the rows after the last one read" misses none. An id is
never reused, even after rows were deleted.
"""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

VERSION = 5  # of the schema; `migrations` upgrades older stores

metadata = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only INTEGER columns

meta = Table("meta", metadata, Column("name", String, primary_key=True), Column("value", Text, nullable=False))

applications = Table(
    "applications",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("kind", String, nullable=False),  # ranked (actions in the request), fixed, continuous
    Column("settings", Text, nullable=False),  # JSON, `settings.Settings`
    Column("pinned", Integer),  # served model version; NULL: the newest published one
    Column("created_at", Double, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("digest", String, primary_key=True),  # SHA-256 of the key; the key itself is not stored
    Column("application_id", Integer, nullable=False),
    Column("role", String, nullable=False),  # write, read
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),  # NULL: never
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("application_id", Integer, nullable=False),
    Column("event_id", String, nullable=False),
    Column("slot", String, nullable=False, default=""),  # slot id; one decision per slot of an event
    Column("decided_at", Double, nullable=False),  # seconds since 1970, UTC
    Column("context", LargeBinary, nullable=False),  # JSON; dsjson's `c` if it contains the actions
    Column("actions", LargeBinary),  # JSON list of the allowed ids (names), in the order of the request
    Column("action", Integer),  # chosen action: its index in `actions`
    Column("value", Double),  # chosen real-valued action
    Column("propensity", Double, nullable=False),  # of the chosen action
    Column("probabilities", LargeBinary),  # of all `actions`, float64, little-endian
    Column("uniform", Double, nullable=False),  # random number of the draw
    Column("exploration", Double, nullable=False, default=0.0),  # fraction of uniform decisions in the settings
    Column("model_version", Integer, nullable=False),  # 0: before the first model
    Column("deferred", Boolean, nullable=False),  # True: it counts only after activation
    Column("baseline", Integer),  # index of the application's own choice in `actions`
    Column("preferred", Integer),  # apprentice mode and control group: the policy's choice
    Column("experiment", String),  # `control.experiment_of`; NULL: nothing is compared
    Column("unit", String),  # digest of what is in a group; it counts once
    Column("control", Boolean),  # True: in the control group
    UniqueConstraint("application_id", "event_id", "slot"),
    Index("decisions_in_order", "application_id", "id", "decided_at"),
    Index("decisions_by_time", "application_id", "decided_at"),
    sqlite_autoincrement=True,
)

# lz4 takes half the time of PostgreSQL's default compression, if it is available.
_LZ4 = """DO $$ BEGIN ALTER TABLE decisions ALTER COLUMN context SET COMPRESSION lz4;
EXCEPTION WHEN OTHERS THEN NULL; END $$"""
_made_small = DDL(_LZ4)  # type: ignore[no-untyped-call]  # SQLAlchemy says no types here
event.listen(decisions, "after_create", _made_small.execute_if(dialect="postgresql"))

activations = Table(
    "activations",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("application_id", Integer, nullable=False),
    Column("event_id", String, nullable=False),
    Column("activated_at", Double, nullable=False),
    UniqueConstraint("application_id", "event_id"),
    Index("activations_in_order", "application_id", "id"),
    sqlite_autoincrement=True,
)

rewards = Table(
    "rewards",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),
    Column("application_id", Integer, nullable=False),
    Column("event_id", String, nullable=False),
    Column("slot", String, nullable=False, default=""),
    Column("value", Double, nullable=False),
    Column("received_at", Double, nullable=False),
    Column("idempotency_key", String),  # a second reward with the same key is ignored
    Column("metrics", Text),  # JSON {name: number}
    UniqueConstraint("application_id", "event_id", "slot", "idempotency_key"),
    Index("rewards_in_order", "application_id", "id"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("id", _ID, primary_key=True, autoincrement=True),  # defines the order of learning
    Column("application_id", Integer, nullable=False),
    Column("decision_id", _ID, nullable=False, unique=True),
    Column("reward", Double, nullable=False),
    Column("by_default", Boolean, nullable=False),  # True: no reward arrived in time
    Column("joined_at", Double, nullable=False),
    Index("outcomes_in_order", "application_id", "id"),
    sqlite_autoincrement=True,
)

models = Table(
    "models",
    metadata,
    Column("application_id", Integer, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("outcome_id", _ID, nullable=False),  # last outcome learned from
    Column("rows", _ID, nullable=False),  # number of rows learned from
    Column("body", LargeBinary, nullable=False),  # a saved Decider, without contexts
    Column("withdrawn", Text),  # reason of the withdrawal
    Column("last_decision", _ID),  # last counted decision of this version; the version is kept as long as it exists
)

# A learner is a function of its settings and its cuts: the outcomes after one cut up to the next are one batch.
trainings = Table(
    "trainings",
    metadata,
    Column("id", String, primary_key=True),
    Column("application_id", Integer, nullable=False),
    Column("began_at", Double, nullable=False),
    Column("start", _ID, nullable=False),  # outcomes after this one
    Column("settings", Text, nullable=False),  # JSON
    Column("import_id", Integer),  # the imported learner that it began with; NULL: none
)

imports = Table(
    "imports",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("application_id", Integer, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("rows", _ID, nullable=False),  # of its log
    Column("body", LargeBinary, nullable=False),  # a saved learner, with its log
    Column("ended_at", Double),  # learning goes on from it no more
    sqlite_autoincrement=True,
)

cuts = Table(
    "cuts",
    metadata,
    Column("training_id", String, primary_key=True),
    Column("outcome_id", _ID, primary_key=True, autoincrement=False),  # last outcome of the batch
    Column("rows", Integer, nullable=False),  # of the batch
    Column("learned", Boolean, nullable=False),  # False: passed over, in the mode LoggingOnly
    Column("version", Integer),  # of the model that was published then
)

minutes = Table(
    "minutes",
    metadata,
    Column("application_id", Integer, primary_key=True),
    Column("minute", _ID, primary_key=True),  # of the decisions: decided_at // 60
    Column("decisions", Integer, nullable=False),  # deferred decisions count after activation
    Column("outcomes", Integer, nullable=False),
    Column("defaults", Integer, nullable=False),
    Column("reward", Double, nullable=False),  # Σ r
    Column("reward_squared", Double, nullable=False),  # Σ r²
    Column("uniform", Text, nullable=False),  # JSON [Σ w, Σ w r, Σ w², Σ w² r²] with w = (1/K) / p
    Column("baseline", Text, nullable=False),  # the same with w = 1{a = baseline} / p
    Column("standing", LargeBinary, nullable=False),  # `gain_intervals.pack`: sums for anytime-valid intervals
    Column("actions", Text, nullable=False),  # JSON {action id: decisions}, the most frequent ones
)
