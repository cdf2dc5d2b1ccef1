package v1alpha1

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BedSpec says what grows in a bed, and how large it is.
type BedSpec struct {
	Plant string `json:"plant"`
	// Size is "WIDTHxLENGTH".
	// +kubebuilder:validation:Pattern=`^[0-9]+x[0-9]+$`
	Size string `json:"size"`
}

// BedStatus is what the controller has found.
type BedStatus struct {
	// +optional
	Area string `json:"area,omitempty"`
	// +optional
	Conditions []meta.Condition `json:"conditions,omitempty"`
}

// Bed is a bed of a garden.
// +kubebuilder:object:root=true
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

func (in *BedSpec) deepCopyInto(out *BedSpec) { *out = *in }
