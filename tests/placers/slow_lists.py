"""HEFT and ETF again, slowly and from their definitions, to hold the compiled ones against."""

from placement.simulator.lowering import host_of


class SlowLanes:
    """What a list scheduler knows, in dictionaries and lists, straight from the definitions."""

    def __init__(self, problem, *, insertion):
        self.problem, self.insertion = problem, insertion
        self.start, self.end, self.device, self.unit_device = {}, {}, {}, {}
        self.arrival, self.free = {}, {}
        devices = problem.machine.index
        self.card = {
            (devices[link.src], devices[link.dst]): link.card for link in problem.machine.links
        }
        self.host = host_of(problem)
        self.reads = [[] for _ in problem.kernels.ops]
        for t, tensor in enumerate(problem.kernels.tensors):
            for consumer in tensor.consumers:
                self.reads[problem.kernels.index[consumer]].append(t)

    def source(self, t, d):
        """Where tensor t waits and since when; None if device d needs no transfer for it."""
        producer = self.problem.kernels.tensors[t].producer
        if producer is None:
            at_hand = self.host < 0 or self.problem.machine.devices[d].on_host
            return (None if at_hand else self.host), 0.0
        p = self.problem.kernels.index[producer]
        return (None if self.device[p] == d else self.device[p]), self.end[p]

    def channel(self, src, d):
        """What carries one tensor after another from one device to another."""
        return self.card.get((src, d)) or (src, d)

    def sent(self, t, d):
        src, start = self.source(t, d)
        if self.problem.link_contention:
            start = max(start, self.free.get(self.channel(src, d), 0.0))
        num_bytes = self.problem.kernels.tensors[t].num_bytes
        return start + self.problem.costs.transfer_s(src, d, num_bytes)

    def way_back_s(self, k, d):
        """What the model outputs of a kernel take from a device to the host, one after another."""
        if self.host < 0 or self.problem.machine.devices[d].on_host:
            return 0.0
        name = self.problem.kernels.ops[k].name
        outputs = [t for t in self.problem.kernels.tensors if t.producer == name and t.is_output]
        return sum(self.problem.costs.transfer_s(d, self.host, t.num_bytes) for t in outputs)

    def ready(self, k, d):
        ready, crosses = 0.0, False
        for t in self.reads[k]:
            src, since = self.source(t, d)
            if src is None:
                ready = max(ready, since)
            elif (t, d) in self.arrival:
                ready = max(ready, self.arrival[t, d])
            else:
                ready, crosses = max(ready, self.sent(t, d)), True
        return ready, crosses

    def slot(self, k, d):
        ready, crosses = self.ready(k, d)
        pays = crosses and self.problem.execution == "segment"
        duration = self.problem.costs.compute_s[k, d]
        duration += self.problem.costs.call_s[d] if pays else 0.0
        busy = sorted((self.start[j], self.end[j]) for j in self.device if self.device[j] == d)
        if not self.insertion:
            start = max([ready, *(end for _, end in busy)])
            return start, start + duration
        # The first moment that no interval of the device forbids is the ready time or an end.
        for start in sorted({ready, *(end for _, end in busy if end >= ready)}):
            if all(start + duration <= a or start >= b for a, b in busy):
                return start, start + duration
        raise AssertionError

    def put(self, k, d):
        self.start[k], self.end[k] = self.slot(k, d)
        for t in self.reads[k]:
            src, _ = self.source(t, d)
            if src is not None and (t, d) not in self.arrival:
                self.arrival[t, d] = self.free[self.channel(src, d)] = self.sent(t, d)
        self.device[k] = d
        self.unit_device[int(self.problem.unit_of_kernel[k])] = d

    def choices(self, k):
        unit = int(self.problem.unit_of_kernel[k])
        if unit in self.unit_device:
            return [self.unit_device[unit]]
        return [d for d in range(self.problem.num_devices) if self.problem.allowed[unit, d]]

    def same_as(self, lanes):
        every = range(len(self.reads))
        assert [self.device[k] for k in every] == lanes.device.tolist()
        assert [self.start[k] for k in every] == lanes.start_s.tolist()
        assert [self.end[k] for k in every] == lanes.end_s.tolist()


def slow_heft(problem, order):
    lanes = SlowLanes(problem, insertion=True)
    for k in order:
        unit = int(problem.unit_of_kernel[k])
        new = unit not in lanes.unit_device
        others = [j for j in problem.kernels_of_unit[unit] if new and j != k]

        def value(d, k=k, others=others):
            rest = sum(problem.costs.compute_s[j, d] for j in others)
            return lanes.slot(k, d)[1] + rest + lanes.way_back_s(k, d)

        lanes.put(k, min(lanes.choices(k), key=value))
    return lanes


def slow_etf(problem, rank):
    lanes = SlowLanes(problem, insertion=False)
    num_kernels = len(problem.kernels.ops)
    while len(lanes.device) < num_kernels:
        ready = [
            k
            for k in range(num_kernels)
            if k not in lanes.device
            and all(p in lanes.device for p in problem.kernels.predecessors[k])
        ]
        pairs = [(lanes.slot(k, d)[0], rank[k], d, k) for k in ready for d in lanes.choices(k)]
        _, _, d, k = min(pairs)
        lanes.put(k, d)
    return lanes
