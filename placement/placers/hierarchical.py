"""The hierarchical planner: a feed-forward grouper and a sequence model that places the groups.

Mirhoseini et al., "A hierarchical model for device placement", ICLR 2018. The preset `paper` has
the numbers of its published code (features of 46 numbers, two linear maps to 20 groups for each
device and at most 256, an LSTM of 512 that reads both ways and one that writes devices with
additive attention, logits through tanh, noise of 0.5 until update 750, no new devices of groups
after update 500, signal sqrt(time) with an average that starts where placements fail, Adam 0.1
with decay, clip 1) and of the paper (one grouping and four placements in a batch). Neighbours are
told by numbers with a sign, and counts of types do not share their columns with shapes.

The preset `tuned` differs:
- it begins on few clusters and goes on from there on finer ones, down to chains of ops;
- the order of execution is chosen anew for the best placement so far;
- widths of 64, at most 32 groups, no tanh and no noise;
- features are scaled, and each op learns a preference of groups of its own;
- every placement has a grouping of its own, and its chance is summed over all groupings that give
  the same devices; groups are described by the shares of ops in them;
- advantages are of logarithms, in batches of 64; the best 16 placements are imitated; part of each
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

PLANNED_PLACING_HIDDEN = 512
TUNED_PLACING_HIDDEN, TUNED_GROUPS, TUNED_BATCH = 64, 32, 64
# How many times as much a placement costs as valuing it.
TUNED_COST, PLANNED_COST = 10, 50


@dataclass(frozen=True, kw_only=True)
class Hierarchical(Learner):
    summary = "A network that groups ops and a sequence model with attention that places groups"
    paper = "Mirhoseini et al.: A hierarchical model for device placement, ICLR 2018"
    needs = ("safetensors", "torch")
    pseudo_code = lines(
        "draw a group for each op, then devices for the groups one after another, by two networks",
        "make likelier what took less time than the mean, and unlikelier what took more",
    )

    preset: Literal["tuned", "paper"] = setting(
        "tuned", "What works in a minute, or the numbers of the paper and its code"
    )
    max_iterations: int = setting(
        0, "Batches of placements; 0 takes as many as the time allows, or some by size", low=0
    )
    batch: int = setting(0, "Placements in a batch; 0: by preset, 64 or 4", low=0)
    groups: int = setting(
        0, "Groups; 0: 20 for each device, but by preset no more than 32 or 256", low=0
    )
    hidden: int = setting(0, "Width of the grouper; 0: 64", low=0)
    placing_hidden: int = setting(
        0, "Width of the sequence model, an even number; 0: by preset, 64 or 512", low=0
    )
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
        width = PLANNED_PLACING_HIDDEN if is_paper else TUNED_PLACING_HIDDEN
        sizes = {
            "hidden": self.hidden or PLANNED_HIDDEN,
            "placing_hidden": self.placing_hidden or width,
        }
        grouping = Grouping(
            in_turn=True,
            paper=is_paper,
            groups=self.groups,
            most_groups=TUNED_GROUPS,
            **sizes,
            files=PolicyFiles("hierarchical", self.preset, self.policy, self.save, sizes),
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


PLACER = Hierarchical
