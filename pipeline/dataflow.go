package pipeline

import "strconv"

// dataflowThreads is how many lanes a Dataflow worker has at once where the
// user says nothing else.
const dataflowThreads = 4

// dataflowSlots is how many lanes can be at work at once on Dataflow.
func (o *Options) dataflowSlots() int {
	number := func(name string, or int) int {
		n, err := strconv.Atoi(o.beam(name))
		if err != nil || n < 1 {
			return or
		}
		return n
	}
	return number("num_workers", 1) * number("number_of_worker_harness_threads", dataflowThreads)
}
