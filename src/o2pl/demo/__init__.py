"""`o2pl demo`: the product's story on embedded data, in about a minute.

A learner compared with rivals (`online`), off-policy evaluation of other policies from its log (`judged`), safe
improvement of a policy in production (`improved`), decisions over HTTP (`served`). `story` runs the steps; `pictures`
and `page` show them.
"""
