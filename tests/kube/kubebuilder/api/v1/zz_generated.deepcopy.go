package v1

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies the bed into another one.
func (in *Bed) DeepCopyInto(out *Bed) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Spec.deepCopyInto(&out.Spec)
	out.Status = in.Status
	out.Status.Conditions = append([]meta.Condition(nil), in.Status.Conditions...)
}

// DeepCopy copies the bed.
func (in *Bed) DeepCopy() *Bed {
	out := new(Bed)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies the bed.
func (in *Bed) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject copies the list.
func (in *BedList) DeepCopyObject() runtime.Object {
	out := &BedList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopy())
	}
	return out
}
