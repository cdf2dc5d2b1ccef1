package differential

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
)

// shrink looks for fewer writes after which the two servers still disagree, by leaving out smaller and
// smaller parts. fresh starts two empty servers and replays a list; it returns the first difference, or
// nil.
func shrink(writes []request, last request, limit time.Duration,
	fresh func([]request) *difference) ([]request, *difference) {
	end := time.Now().Add(limit)
	best := withLast(writes, last)
	found := fresh(best)
	if found == nil {
		return nil, nil // replaying the writes in order does not show the difference again
	}
	best = upTo(best, found.request)
	for size := len(best) / 2; size > 0; {
		shorter := false
		for at := 0; at+size < len(best) && time.Now().Before(end); {
			candidate := slices.Delete(slices.Clone(best), at, at+size)
			if d := fresh(candidate); d != nil {
				best, found, shorter = upTo(candidate, d.request), d, true
			} else {
				at += size
			}
		}
		if time.Now().After(end) {
			break
		}
		if size > 1 {
			size /= 2
		} else if !shorter {
			break
		}
	}
	return best, found
}

func withLast(writes []request, last request) []request {
	list := slices.Clone(writes)
	if n := len(list); n > 0 && list[n-1].body == last.body {
		return list
	}
	return append(list, last)
}

func upTo(list []request, last request) []request {
	i := slices.IndexFunc(list, func(r request) bool { return r.body == proto.Message(last.body) })
	return list[:i+1]
}
