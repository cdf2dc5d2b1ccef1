package v1

// Hub marks the version that others are converted to and from.
func (*Bed) Hub() {}
