"""One module per competition: how it is graded, prepared and imitated.

A module has three functions; :class:`mle_gym.tasks.mlebench.competition.CompetitionModule` is their contract.
"""
