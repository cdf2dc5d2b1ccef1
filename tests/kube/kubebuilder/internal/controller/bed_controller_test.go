package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenv1 "vigil/tests/kube/kubebuilder/api/v1"
)

var _ = Describe("The controller of beds", func() {
	It("measures beds, also after a change", func() {
		bed := &gardenv1.Bed{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "measured"},
			Spec:       gardenv1.BedSpec{Plant: "leek", Width: 3, Length: 4},
		}
		Expect(k8sClient.Create(ctx, bed)).To(Succeed())
		measured := func() (int32, error) {
			err := k8sClient.Get(ctx, client.ObjectKeyFromObject(bed), bed)
			return bed.Status.Area, err
		}
		Eventually(measured).Should(BeEquivalentTo(12))
		Expect(meta.IsStatusConditionTrue(bed.Status.Conditions, "Ready")).To(BeTrue())
		Eventually(func() error {
			if _, err := measured(); err != nil {
				return err
			}
			bed.Spec.Length = 5
			return k8sClient.Update(ctx, bed)
		}).Should(Succeed())
		Eventually(measured).Should(BeEquivalentTo(15))
	})
})
