"""Groups by a fully connected network, each group on one device, learned by policy gradient.

Liu et al., HPCCC 2019, of which only the abstract is public; what it leaves open is as in its
nearest published relative, the hierarchical planner (Mirhoseini et al., ICLR 2018): features of ops
and groups, the grouper, the signal sqrt(time) against its moving average. Groups are placed by a
network of two layers, each group for itself. That is the preset `paper`, on single ops.

The preset `tuned` differs:
- it begins on few clusters and goes on from there on finer ones, down to chains of ops;
- the order of execution is chosen anew for the best placement so far;
- features are scaled, and each op learns a preference of groups of its own;
- every placement has a grouping of its own, and its chance is summed over all groupings that give
  the same devices; groups are described by the shares of ops in them;
- advantages are of logarithms, in batches of 32; the best 16 placements are imitated; part of each
  batch are changes of the best one: regions of neighbours, ops by the policy, whole groups;
- groups begin with a preference for different devices; entropy is rewarded less and less.

A `policy` holds both networks and what groups prefer, not what single ops do; groups carry to
another machine by the rank in speed of the device that they prefer at first.
"""

from dataclasses import dataclass
from typing import Literal

from placement.core.placement import Placement
from placement.core.problem import Problem
from placement.learning.account import Trace
from placement.learning.live import Live
from placement.learning.signals import SignalRecipe
from placement.learning.training import Recipe
from placement.placers._grouped import PLANNED_HIDDEN, Grouping, evaluations
from placement.placers._learned import Learner, Study, chained, itself, lines, searched
from placement.placers._policies import PolicyFiles, policy_setting, save_setting
from placement.placers.base import Report, setting

TUNED_GROUPS, TUNED_BATCH = 64, 32
# How many times as much a placement costs as valuing it.
TUNED_COST, PLANNED_COST = 4, 50


@dataclass(frozen=True, kw_only=True)
class GroupPg(Learner):
    summary = "A network that groups ops and one that places groups, learned by policy gradient"
    paper = "Liu et al.: grouping and placing by policy gradient, HPCCC 2019"
    needs = ("safetensors", "torch")
    pseudo_code = lines(
        "draw a group for each op and a device for each group, as likely as two networks say",
        "make likelier what took less time than the mean, and unlikelier what took more",
    )

    preset: Literal["tuned", "paper"] = setting(
        "tuned", "What works in a minute, or the numbers of the paper and its relative"
    )
    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or some by size", low=0
    )
    batch: int = setting(0, "Placements in a batch; 0: by preset, 32 or 4", low=0)
    groups: int = setting(
        0, "Groups; 0: 20 for each device, but by preset no more than 64 or 256", low=0
    )
    hidden: int = setting(0, "Width of both networks; 0: 64", low=0)
    learning_rate: float = setting(
        0.0, "Rate of Adam; 0: by preset, 0.01, or 0.1 that falls", low=0.0
    )
    search: float = setting(
        0.0, "Share of the time for local search from what was learned", low=0.0, high=0.9
    )
    candidates: str = setting("heft,single", "Placers whose answers stand beside it, by comma")
    policy: str = policy_setting()
    save: str = save_setting()

    def _found(
        self, problem: Problem, live: Live | None, report: Report, trace: Trace
    ) -> Placement:
        is_paper = self.preset == "paper"
        batch = self.batch or (SignalRecipe.batch if is_paper else TUNED_BATCH)
        cost = PLANNED_COST if is_paper else TUNED_COST
        wanted = evaluations(problem, self.max_iterations * batch, self.time_limit_s, cost)
        sizes = {
            "hidden": self.hidden or PLANNED_HIDDEN,
            "placing_hidden": self.hidden or PLANNED_HIDDEN,
        }
        grouping = Grouping(
            in_turn=False,
            paper=is_paper,
            groups=self.groups,
            most_groups=TUNED_GROUPS,
            **sizes,
            files=PolicyFiles("group_pg", self.preset, self.policy, self.save, sizes),
            recipe=Recipe(
                batch=batch, proposed=0.75, learning_rate=self.learning_rate or 0.01, entropy=0.01
            ),
            signals=SignalRecipe(
                batch=batch, learning_rate=self.learning_rate or SignalRecipe.learning_rate
            ),
            seed=self.seed,
        )
        study = Study(
            find=grouping.files.keeping(grouping.find),
            level=itself if is_paper else chained,
            seed=self.seed,
            max_evaluations=wanted,
            search=self.search,
            time_limit_s=self.time_limit_s,
            executor=self.executor,
            candidates=self.candidates,
        )
        return searched(problem, study, live, report, trace)


PLACER = GroupPg
