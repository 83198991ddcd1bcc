"""Which actions may start, and which finished ones make the next batch.

| rule | in flight | the batch | dropped | oldest sample |
|---|---|---|---|---|
| ``Race`` | m * B | the first B to finish | with ``cancel`` all others | unbounded with ``keep`` |
| ``OldestFirst`` | (1 + lookahead) * B | the oldest B that have finished | nothing | unbounded |
| ``InOrder`` | (1 + lookahead) * B | the oldest B, waited for | nothing | lookahead updates |
| ``DropStale`` | m * B | the first B to finish | what is over max_lag updates old | max_lag updates |
"""

from __future__ import annotations

from trainers.common.admission.base import Admission, Taken
from trainers.common.admission.drop_stale import DropStale
from trainers.common.admission.gate import CapacityGate
from trainers.common.admission.in_order import InOrder
from trainers.common.admission.lookahead import AutoLookahead
from trainers.common.admission.oldest_first import OldestFirst
from trainers.common.admission.race import Race

__all__ = ["Admission", "AutoLookahead", "CapacityGate", "DropStale", "InOrder", "OldestFirst", "Race", "Taken"]
