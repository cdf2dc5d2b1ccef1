// Package v1alpha1 has the types of the group garden.example.com in this version.
// +kubebuilder:object:generate=true
// +groupName=garden.example.com
package v1alpha1

import (
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is used to register these objects.
	GroupVersion = schema.GroupVersion{Group: "garden.example.com", Version: "v1alpha1"}

	// SchemeBuilder collects functions that add types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Bed{}, &BedList{})
		meta.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
