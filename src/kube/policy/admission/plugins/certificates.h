/*
 * Requests for certificates: CertificateApproval and CertificateSigning, which let only those
 * approve and sign who may do so for the signer that the request names, and
 * CertificateSubjectRestriction, which refuses requests for the group system:masters that the
 * signer of client certificates is to sign. What the user may do is decided by
 * kube/policy/access/write_right.h.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_CERTIFICATES_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_CERTIFICATES_H

#include "kube/policy/admission/plugins/plugin.h"

extern const struct kube_admission_plugin kube_certificate_approver;
extern const struct kube_admission_plugin kube_certificate_signer;
extern const struct kube_admission_plugin kube_certificate_subject;

#endif
