"""A live window on a campaign: a local web page that only reads. Needs the extra `dashboard`.

`rules` decides who may see what, `doorman` keeps requests small and few, `window` follows the ledger, `app` answers,
`server` listens. There is no route that changes anything.
"""
