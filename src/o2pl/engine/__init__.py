"""The engine: members on one log, learned at checkpoints, acting as one mixture in between.

spec                       what a learner chooses: members, schedule, acting, change detection
engine                     decide, append, learn when it is due, state and restore
  decider                  the acting policy: immutable, explained, published
  member, schedules        one policy class and what it has learned; when it learns
  member_weights, change   how members are weighted; how a change of the world is detected
  deciding, uncertainty    the acting policy of what was learned; how certain predictions are, which is what explores
  item_memory              effects of single items by id
  controlling              the control variate that members share
  compiled                 the compiled learner, which does all of that where the parts are its own
pending, stream, lock      decisions without a reward; random numbers; one learner, many threads
offline, refreshing        a whole log to convergence; a few rows at a bounded cost
simulation                 many rounds at once
files, decider_files       what is saved
"""
