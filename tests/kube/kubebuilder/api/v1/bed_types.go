package v1

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BedSpec says what grows in a bed, and how large it is.
// +kubebuilder:validation:XValidation:rule="self.width <= self.length",message="a bed is at least as long as it is wide"
// +kubebuilder:validation:XValidation:rule="self.width * self.length <= 100",messageExpression="self.width > 10 ? 'too large and wide' : 'too large'"
type BedSpec struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="what grows cannot be changed"
	Plant string `json:"plant"`
	// +kubebuilder:validation:Minimum=1
	Width int32 `json:"width"`
	// +kubebuilder:validation:Minimum=1
	Length int32 `json:"length"`
	// Waterings a day; the webhook's default depends on the size.
	// +optional
	Waterings *int32 `json:"waterings,omitempty"`
	// +optional
	// +listType=set
	Notes []string `json:"notes,omitempty"`
}

// BedStatus is what the controller has found.
type BedStatus struct {
	// +optional
	Area int32 `json:"area,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []meta.Condition `json:"conditions,omitempty"`
}

// Bed is a bed of a garden.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type Bed struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Spec   BedSpec   `json:"spec,omitempty"`
	Status BedStatus `json:"status,omitempty"`
}

// BedList is a list of beds.
// +kubebuilder:object:root=true
type BedList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty"`
	Items         []Bed `json:"items"`
}

func (in *BedSpec) deepCopyInto(out *BedSpec) {
	*out = *in
	if in.Waterings != nil {
		count := *in.Waterings
		out.Waterings = &count
	}
	out.Notes = append([]string(nil), in.Notes...)
}
