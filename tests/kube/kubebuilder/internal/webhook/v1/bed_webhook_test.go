package v1

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
	"vigil/tests/kube/kubebuilder/api/v1alpha1"
)

var made int

func newBed(plant string) *gardenv1.Bed {
	made++
	return &gardenv1.Bed{
		ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bed-%d", made)},
		Spec:       gardenv1.BedSpec{Plant: plant, Width: 2, Length: 3},
	}
}

func oldBed(plant, size string) *v1alpha1.Bed {
	made++
	return &v1alpha1.Bed{
		ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bed-%d", made)},
		Spec:       v1alpha1.BedSpec{Plant: plant, Size: size},
	}
}

// warned collects the warnings of a client.
type warned struct {
	lock  sync.Mutex
	texts []string
}

func (w *warned) HandleWarningHeader(_ int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.texts = append(w.texts, text)
}

var _ = Describe("The defaulting webhook", func() {
	It("sets what is missing", func() {
		bed := newBed("leek")
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		Expect(bed.Spec.Waterings).To(HaveValue(BeEquivalentTo(1)))
		Expect(bed.Labels).To(HaveKeyWithValue("plant", "leek"))
		large := newBed("leek")
		large.Spec.Width, large.Spec.Length = 5, 6
		Expect(k8sClient.Create(ctx, large)).To(Succeed())
		Expect(large.Spec.Waterings).To(HaveValue(BeEquivalentTo(3)))
	})
	It("keeps what the client has set", func() {
		bed := newBed("leek")
		bed.Spec.Waterings = ptr.To(int32(7))
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		Expect(bed.Spec.Waterings).To(HaveValue(BeEquivalentTo(7)))
	})
	It("is called for updates, patches and applies", func() {
		bed := newBed("leek")
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		bed.Labels, bed.Spec.Waterings = nil, nil
		Expect(k8sClient.Update(ctx, bed)).To(Succeed())
		Expect(bed.Labels).To(HaveKeyWithValue("plant", "leek"))
		Expect(bed.Spec.Waterings).To(HaveValue(BeEquivalentTo(1)))
		Expect(k8sClient.Patch(ctx, bed, client.RawPatch(types.MergePatchType, []byte(
			`{"metadata":{"labels":{"plant":null}}}`)))).To(Succeed())
		Expect(bed.Labels).To(HaveKeyWithValue("plant", "leek"))
		applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"plant": "leek", "width": 3, "length": 4}}}
		applied.SetGroupVersionKind(gardenv1.GroupVersion.WithKind("Bed"))
		applied.SetNamespace("default")
		applied.SetName("applied")
		Expect(k8sClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"))).To(Succeed())
		Expect(applied.GetLabels()).To(HaveKeyWithValue("plant", "leek"))
	})
	It("is called in a dry run, which changes nothing", func() {
		bed := newBed("leek")
		Expect(k8sClient.Create(ctx, bed, client.DryRunAll)).To(Succeed())
		Expect(bed.Labels).To(HaveKeyWithValue("plant", "leek"))
		Expect(errors.IsNotFound(k8sClient.Get(ctx, client.ObjectKeyFromObject(bed), bed))).To(BeTrue())
	})
})

var _ = Describe("The validating webhook", func() {
	It("refuses new beds", func() {
		bed := newBed("weed")
		bed.Spec.Waterings = ptr.To(int32(11))
		err := k8sClient.Create(ctx, bed)
		Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(Equal(fmt.Sprintf(`admission webhook "vbed-v1.kb.io" denied the request: Bed.garden.example.com %q is invalid: `+
			`[spec.plant: Invalid value: "weed": a weed is not planted, spec.waterings: Invalid value: 11: everything would drown]`, bed.Name)))
		Expect(err.(errors.APIStatus).Status().Details.Causes).To(HaveLen(2))
	})
	It("refuses changes", func() {
		bed := newBed("leek")
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		bed.Spec.Length = 2
		err := k8sClient.Update(ctx, bed)
		Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(`admission webhook "vbed-v1.kb.io" denied the request: a bed does not shrink`))
	})
	It("refuses deletions", func() {
		bed := newBed("leek")
		bed.Annotations = map[string]string{Protected: ""}
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		Expect(errors.IsForbidden(k8sClient.Delete(ctx, bed))).To(BeTrue())
		bed.Annotations = nil
		Expect(k8sClient.Update(ctx, bed)).To(Succeed())
		Expect(k8sClient.Delete(ctx, bed)).To(Succeed())
	})
	It("warns", func() {
		seen := &warned{}
		cfg := rest.CopyConfig(testEnv.Config)
		cfg.WarningHandler = seen
		other, err := client.New(cfg, client.Options{Scheme: k8sClient.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Create(ctx, newBed("mint"))).To(Succeed())
		Expect(seen.texts).To(Equal([]string{"mint spreads"}))
	})
})

var _ = Describe("The rules of the definition", func() {
	It("are applied after the defaults", func() {
		bed := newBed("leek")
		bed.Spec.Width = 4
		err := k8sClient.Create(ctx, bed)
		Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("a bed is at least as long as it is wide"))
		bed.Spec.Width, bed.Spec.Length = 11, 12
		Expect(k8sClient.Create(ctx, bed)).To(MatchError(ContainSubstring("too large and wide")))
	})
	It("see the old object", func() {
		bed := newBed("leek")
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		bed.Spec.Plant = "beet"
		Expect(k8sClient.Update(ctx, bed)).To(MatchError(ContainSubstring("what grows cannot be changed")))
	})
})

var _ = Describe("The conversion webhook", func() {
	key := func(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

	It("shows new beds in the old version", func() {
		bed := newBed("kale")
		bed.Spec.Notes = []string{"blue"}
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		var old v1alpha1.Bed
		Expect(k8sClient.Get(ctx, key(bed), &old)).To(Succeed())
		Expect(old.Spec).To(Equal(v1alpha1.BedSpec{Plant: "kale", Size: "2x3"}))
		Expect(old.Annotations).To(HaveKeyWithValue(v1alpha1.Kept, `{"waterings":1,"notes":["blue"]}`))
		Expect(old.UID).To(Equal(bed.UID))
		Expect(old.ResourceVersion).To(Equal(bed.ResourceVersion))
	})
	It("stores old beds in the new version, and both webhooks see them in it", func() {
		old := oldBed("kale", "3x9")
		Expect(k8sClient.Create(ctx, old)).To(Succeed())
		Expect(old.Labels).To(HaveKeyWithValue("plant", "kale"))
		Expect(old.Annotations).To(HaveKeyWithValue(v1alpha1.Kept, `{"waterings":3}`))
		var bed gardenv1.Bed
		Expect(k8sClient.Get(ctx, key(old), &bed)).To(Succeed())
		Expect(bed.Spec).To(Equal(gardenv1.BedSpec{Plant: "kale", Width: 3, Length: 9, Waterings: ptr.To(int32(3))}))
		Expect(errors.IsInvalid(k8sClient.Create(ctx, oldBed("weed", "3x9")))).To(BeTrue())
	})
	It("keeps what the old version cannot say", func() {
		bed := newBed("kale")
		bed.Spec.Notes, bed.Spec.Waterings = []string{"a", "b"}, ptr.To(int32(9))
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		var old v1alpha1.Bed
		Expect(k8sClient.Get(ctx, key(bed), &old)).To(Succeed())
		old.Spec.Size = "4x5"
		Expect(k8sClient.Update(ctx, &old)).To(Succeed())
		Expect(k8sClient.Patch(ctx, &old, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":"4x6"}}`)))).To(Succeed())
		Expect(k8sClient.Get(ctx, key(bed), bed)).To(Succeed())
		Expect(bed.Spec).To(Equal(gardenv1.BedSpec{Plant: "kale", Width: 4, Length: 6, Waterings: ptr.To(int32(9)), Notes: []string{"a", "b"}}))
	})
	It("says why it fails", func() {
		old := oldBed("kale", "2x99999999999")
		err := k8sClient.Create(ctx, old)
		Expect(err).To(MatchError(ContainSubstring("conversion webhook for garden.example.com/v1alpha1, Kind=Bed failed")))
		Expect(err).To(MatchError(ContainSubstring("is not of the form 2x3")))
	})
	It("is called before the schema applies, because webhooks see the new version", func() {
		err := k8sClient.Create(ctx, oldBed("kale", "large"))
		Expect(err).To(MatchError(ContainSubstring(`the size "large" is not of the form 2x3`)))
	})
	It("converts the status", func() {
		bed := newBed("kale")
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		bed.Status.Area = 6
		Expect(k8sClient.Status().Update(ctx, bed)).To(Succeed())
		var old v1alpha1.Bed
		Expect(k8sClient.Get(ctx, key(bed), &old)).To(Succeed())
		Expect(old.Status.Area).To(Equal("6"))
		old.Status.Area = "7"
		Expect(k8sClient.Status().Update(ctx, &old)).To(Succeed())
		Expect(k8sClient.Get(ctx, key(bed), bed)).To(Succeed())
		Expect(bed.Status.Area).To(BeEquivalentTo(7))
	})
	It("lists and watches all beds in each version", func() {
		list := func(of client.ObjectList) int {
			Expect(k8sClient.List(ctx, of, client.InNamespace("default"))).To(Succeed())
			switch list := of.(type) {
			case *gardenv1.BedList:
				return len(list.Items)
			case *v1alpha1.BedList:
				for _, old := range list.Items {
					Expect(old.Spec.Size).NotTo(BeEmpty())
				}
				return len(list.Items)
			}
			return 0
		}
		for range 20 {
			Expect(k8sClient.Create(ctx, newBed("peas"))).To(Succeed())
		}
		count := list(&gardenv1.BedList{})
		Expect(list(&v1alpha1.BedList{})).To(Equal(count))

		informer, err := manager.GetCache().GetInformer(ctx, &v1alpha1.Bed{})
		Expect(err).NotTo(HaveOccurred())
		sizes := make(chan string, 10000)
		watched := oldBed("peas", "1x1")
		name := watched.Name // Create writes into `watched` while the handlers run
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) {
				if o.(*v1alpha1.Bed).Name == name {
					sizes <- o.(*v1alpha1.Bed).Spec.Size
				}
			},
			UpdateFunc: func(_, o any) {
				if o.(*v1alpha1.Bed).Name == name {
					sizes <- o.(*v1alpha1.Bed).Spec.Size
				}
			},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(k8sClient.Create(ctx, watched)).To(Succeed())
		Eventually(sizes).Should(Receive(Equal("1x1")))
		var bed gardenv1.Bed
		Expect(k8sClient.Get(ctx, key(watched), &bed)).To(Succeed())
		bed.Spec.Length = 8
		Expect(k8sClient.Update(ctx, &bed)).To(Succeed())
		Eventually(sizes).Should(Receive(Equal("1x8")))
	})
	It("applies in the old version", func() {
		applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"plant": "chard", "size": "2x2"}}}
		applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Bed"))
		applied.SetNamespace("default")
		applied.SetName("applied-old")
		Expect(k8sClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("me"))).To(Succeed())
		again := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"plant": "chard", "size": "2x4"}}}
		again.SetGroupVersionKind(schema.GroupVersionKind(v1alpha1.GroupVersion.WithKind("Bed")))
		again.SetNamespace("default")
		again.SetName("applied-old")
		Expect(k8sClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(again), client.FieldOwner("me"))).To(Succeed())
		var bed gardenv1.Bed
		Expect(k8sClient.Get(context.Background(), client.ObjectKeyFromObject(again), &bed)).To(Succeed())
		Expect(bed.Spec.Length).To(BeEquivalentTo(4))
	})
})
