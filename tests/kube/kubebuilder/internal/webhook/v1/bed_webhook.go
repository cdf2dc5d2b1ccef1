// Package v1 has the webhooks of beds.
package v1

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
)

// Protected names the annotation of a bed that must not be deleted.
const Protected = "garden.example.com/protected"

// SetupBedWebhookWithManager registers the webhooks for beds.
func SetupBedWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &gardenv1.Bed{}).
		WithValidator(&BedValidator{}).
		WithDefaulter(&BedDefaulter{Small: 1, Large: 3}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-garden-example-com-v1-bed,mutating=true,failurePolicy=fail,sideEffects=None,groups=garden.example.com,resources=beds,verbs=create;update,versions=v1,name=mbed-v1.kb.io,admissionReviewVersions=v1

// BedDefaulter completes beds.
type BedDefaulter struct {
	Small, Large int32 // waterings
}

// Default sets what is missing.
func (d *BedDefaulter) Default(_ context.Context, bed *gardenv1.Bed) error {
	if bed.Spec.Waterings == nil {
		count := d.Small
		if bed.Spec.Width*bed.Spec.Length > 20 {
			count = d.Large
		}
		bed.Spec.Waterings = &count
	}
	if bed.Labels == nil {
		bed.Labels = map[string]string{}
	}
	bed.Labels["plant"] = bed.Spec.Plant
	return nil
}

// +kubebuilder:webhook:path=/validate-garden-example-com-v1-bed,mutating=false,failurePolicy=fail,sideEffects=None,groups=garden.example.com,resources=beds,verbs=create;update;delete,versions=v1,name=vbed-v1.kb.io,admissionReviewVersions=v1

// BedValidator refuses beds.
type BedValidator struct{}

func validate(bed *gardenv1.Bed) (admission.Warnings, error) {
	var faults field.ErrorList
	var warnings admission.Warnings
	spec := field.NewPath("spec")
	if bed.Spec.Plant == "weed" {
		faults = append(faults, field.Invalid(spec.Child("plant"), bed.Spec.Plant, "a weed is not planted"))
	}
	if bed.Spec.Waterings != nil && *bed.Spec.Waterings > 10 {
		faults = append(faults, field.Invalid(spec.Child("waterings"), *bed.Spec.Waterings, "everything would drown"))
	}
	if bed.Spec.Plant == "mint" {
		warnings = append(warnings, "mint spreads")
	}
	if len(faults) == 0 {
		return warnings, nil
	}
	return warnings, errors.NewInvalid(gardenv1.GroupVersion.WithKind("Bed").GroupKind(), bed.Name, faults)
}

// ValidateCreate checks a new bed.
func (*BedValidator) ValidateCreate(_ context.Context, bed *gardenv1.Bed) (admission.Warnings, error) {
	return validate(bed)
}

// ValidateUpdate checks a changed bed.
func (*BedValidator) ValidateUpdate(_ context.Context, old, bed *gardenv1.Bed) (admission.Warnings, error) {
	if bed.Spec.Width < old.Spec.Width || bed.Spec.Length < old.Spec.Length {
		return nil, fmt.Errorf("a bed does not shrink")
	}
	return validate(bed)
}

// ValidateDelete keeps those that are protected.
func (*BedValidator) ValidateDelete(_ context.Context, bed *gardenv1.Bed) (admission.Warnings, error) {
	if _, ok := bed.Annotations[Protected]; ok {
		return nil, fmt.Errorf("the bed %q is protected", bed.Name)
	}
	return nil, nil
}
