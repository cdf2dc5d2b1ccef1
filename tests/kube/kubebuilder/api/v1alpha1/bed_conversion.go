package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
)

// Kept has what this version cannot say, so that nothing is lost on the way there and back.
const Kept = "garden.example.com/kept"

type kept struct {
	Waterings *int32   `json:"waterings,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// ConvertTo converts this bed to the hub's version.
func (in *Bed) ConvertTo(hub conversion.Hub) error {
	out := hub.(*gardenv1.Bed)
	width, length, found := strings.Cut(in.Spec.Size, "x")
	w, errWidth := strconv.ParseInt(width, 10, 32)
	l, errLength := strconv.ParseInt(length, 10, 32)
	if !found || errWidth != nil || errLength != nil {
		return fmt.Errorf("the size %q is not of the form 2x3", in.Spec.Size)
	}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = gardenv1.BedSpec{Plant: in.Spec.Plant, Width: int32(w), Length: int32(l)}
	out.Status.Conditions = in.Status.Conditions
	if in.Status.Area != "" {
		area, err := strconv.ParseInt(in.Status.Area, 10, 32)
		if err != nil {
			return err
		}
		out.Status.Area = int32(area)
	}
	if text, ok := out.Annotations[Kept]; ok {
		var more kept
		if err := json.Unmarshal([]byte(text), &more); err != nil {
			return err
		}
		out.Spec.Waterings, out.Spec.Notes = more.Waterings, more.Notes
		if delete(out.Annotations, Kept); len(out.Annotations) == 0 {
			out.Annotations = nil
		}
	}
	return nil
}

// ConvertFrom makes this bed of one in the hub's version.
func (in *Bed) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*gardenv1.Bed)
	from.ObjectMeta.DeepCopyInto(&in.ObjectMeta)
	in.Spec = BedSpec{Plant: from.Spec.Plant, Size: fmt.Sprintf("%dx%d", from.Spec.Width, from.Spec.Length)}
	in.Status.Conditions = from.Status.Conditions
	if from.Status.Area != 0 {
		in.Status.Area = strconv.Itoa(int(from.Status.Area))
	}
	if from.Spec.Waterings == nil && from.Spec.Notes == nil {
		return nil
	}
	text, err := json.Marshal(kept{from.Spec.Waterings, from.Spec.Notes})
	if err != nil {
		return err
	}
	if in.Annotations == nil {
		in.Annotations = map[string]string{}
	}
	in.Annotations[Kept] = string(text)
	return nil
}
