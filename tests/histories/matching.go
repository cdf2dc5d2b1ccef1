package main

// matching pairs things of two kinds, left and right, each with at most one of the other. It finds a partner whenever
// there is one, if need be by giving others new partners: what has a partner never loses it again.
type matching struct {
	right           [][]int // possible partners of each on the left
	left            [][]int // of each on the right
	ofLeft, ofRight []int   // the partners; -1: none
}

func newMatching(lefts, rights int, fits func(left, right int) bool) *matching {
	m := &matching{right: make([][]int, lefts), left: make([][]int, rights), ofLeft: make([]int, lefts), ofRight: make([]int, rights)}
	for l := range m.right {
		m.ofLeft[l] = -1
		for r := range m.left {
			if fits(l, r) {
				m.right[l] = append(m.right[l], r)
				m.left[r] = append(m.left[r], l)
			}
		}
	}
	for r := range m.ofRight {
		m.ofRight[r] = -1
	}
	return m
}

// matchLeft finds a partner for one on the left, and returns whether it has one now.
func (m *matching) matchLeft(l int) bool {
	return m.ofLeft[l] >= 0 || augment(l, m.right, m.ofLeft, m.ofRight, map[int]bool{})
}

// matchRight finds a partner for one on the right, and returns whether it has one now.
func (m *matching) matchRight(r int) bool {
	return m.ofRight[r] >= 0 || augment(r, m.left, m.ofRight, m.ofLeft, map[int]bool{})
}

// augment looks for a partner that is free, or whose own partner can have another one.
func augment(one int, possible [][]int, partner, back []int, tried map[int]bool) bool {
	for _, other := range possible[one] {
		if tried[other] {
			continue
		}
		tried[other] = true
		if back[other] < 0 || augment(back[other], possible, partner, back, tried) {
			partner[one], back[other] = other, one
			return true
		}
	}
	return false
}
