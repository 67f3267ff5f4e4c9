"""`o2pl demo`: the product's story on embedded data, in about a minute.

A learner beside its rivals (`online`), what its log says about other policies (`judged`), a policy in production that
is improved safely (`improved`), decisions over HTTP (`served`). `story` runs the steps; `pictures` and `page` show
them.
"""
