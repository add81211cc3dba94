"""Learners for bandit feedback, run on one bit an episode.

Instead of the total reward X of an episode the learner is shown a coin B that falls on 1 with
probability X, given everything that happened. E[B | policy] = E[X | policy], and B lies in [0, 1]
as X does. So whatever is proved of a bandit learner from

    the mean of an episode's feedback is the value of its policy,
    the feedback of different episodes is independent given their policies, and
    the feedback lies in [0, 1] (Hoeffding's inequality)

holds unchanged. That is all that the analysis of ExpRef (Theorem 3.1) and OrderedExpRef (Theorem
3.11) uses: Phi is the mean, and Lemma 3.6 is Hoeffding's inequality for the mean of n episodes. The
bounds are those of bandit feedback to the last constant. What is lost is variance: V (1 - V) of a
coin is the largest that feedback in [0, 1] with mean V can have. It carries over to whatever else
rests on these three alone, such as `expref_shared` and `prophet_bandit` with their "theory" presets.

In block form n episodes of a policy of value V are one draw from Binomial(n, V), exactly: the
cheapest runs that there are, for any T up to 2^53 (`jaxbandit.engines.blocks.machine`).
"""

from __future__ import annotations

from jaxbandit.checks import typed
from jaxbandit.learner import Learner


def one_bit(learner: Learner) -> Learner:
    """The same learner, shown one bit an episode instead of the total reward.

    A block form is kept: it is told how many of an arm's bits are 1, where it was told the sum of
    the totals.

    Example:
        >>> import jaxbandit as jb
        >>> one_bit(jb.make_learner("expref", preset="practical")).feedback
        'one-bit'
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> learners = {"ExpRef": one_bit(jb.make_learner("expref"))}
        >>> long = jb.sweep(learners, {"I1": mdp}, num_episodes=10**12, num_seeds=1, progress=False)
        >>> float(long["regret"][0, 0, 0, -1]) < 1e-4 * 10**12
        True
        >>> one_bit(jb.make_learner("ucbvi"))
        Traceback (most recent call last):
        ...
        ValueError: learner: 'ucbvi' with feedback 'semi-bandit'; accepted: learners with feedback 'bandit'
    """
    typed("learner", learner, Learner, "a Learner, as make_learner gives it")
    if learner.feedback != "bandit":
        raise ValueError(
            f"learner: {learner.name!r} with feedback {learner.feedback!r}; "
            "accepted: learners with feedback 'bandit'"
        )
    return learner._replace(feedback="one-bit")
