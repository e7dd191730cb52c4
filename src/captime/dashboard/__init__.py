"""A live window on a campaign: a local web page that only reads. Needs the extra `dashboard`.

`access` decides which requests are answered, `connection_limits` keeps them small and few, `follower` follows the
ledger, `app` answers, `server` listens. There is no route that changes anything.
"""
