/*
 * Requests for certificates: CertificateApproval and CertificateSigning, which let only those
 * approve and sign who may do so for the signer that the request names, and
 * CertificateSubjectRestriction, which refuses requests for the group system:masters that the
 * signer of client certificates is to sign. What the user may do is decided by
 * kube/policy/access/write_right.h.
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "codec/base64.h"
#include "net/tls/request.h"

#define CLIENT_SIGNER "kubernetes.io/kube-apiserver-client"

#define REQUESTS "certificates.k8s.io", "certificatesigningrequests"

/* -- Approving and signing -- */

static bool check_right(const struct kube_admission_write *write)
{
    const struct kube_write_right *right = write->right;
    if (!right || right->allowed)
        return true;
    return kube_admission_forbid(write,
                                 "user not permitted to %.*s requests with signerName \"%.*s\"",
                                 SLICE_ARGS(right->any[0].verb), SLICE_ARGS(right->any[0].name));
}

static bool check_approval(struct kube_admission_write *write)
{
    return check_right(write);
}

/* An empty list or text is the same as none. */
static bool is_same(const struct kube_admission_write *write, const char *path)
{
    const struct json_node *is = json_node_path(write->object, path);
    const struct json_node *was = json_node_path(write->old, path);
    bool some = is && (is->count || is->text.len), had = was && (was->count || was->text.len);
    return some == had && (!some || json_node_equal(is, was));
}

static bool check_signing(struct kube_admission_write *write)
{
    return (is_same(write, "status.certificate") && is_same(write, "status.conditions")) ||
           check_right(write);
}

const struct kube_admission_plugin kube_certificate_approver = {
    .name = "CertificateApproval",
    .rules = {{REQUESTS, "approval", KUBE_ON_UPDATE}},
    .check = check_approval,
};

const struct kube_admission_plugin kube_certificate_signer = {
    .name = "CertificateSigning",
    .rules = {{REQUESTS, "status", KUBE_ON_UPDATE}},
    .check = check_signing,
};

/* -- Subjects -- */

static bool check_subject(struct kube_admission_write *write)
{
    const struct json_node *spec = json_node_named(write->object, "spec");
    struct slice text;
    bool found;
    size_t len = 0;
    if (!json_node_text_is(spec, "signerName", CLIENT_SIGNER))
        return true;
    if (json_node_text(json_node_named(spec, "request"), write->arena, &text) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    uint8_t *pem = arena_alloc(write->arena, text.len / 4 * 3 + 3);
    if (!pem)
        return kube_fail_engine(write->status, ST_NOMEM);
    /* Validation has read the request before. */
    if (!base64_decode(text, pem, &len))
        return kube_admission_forbid(write, "failed to parse CSR: it is not base64");
    switch (tls_request_has_organization(slice_of(pem, len), KUBE_GROUP_MASTERS, &found)) {
    case TLS_REQUEST_FINE:
        break;
    case TLS_REQUEST_NO_MEMORY:
        return kube_fail_engine(write->status, ST_NOMEM);
    default:
        return kube_admission_forbid(write, "failed to parse CSR: it is malformed");
    }
    return !found ||
           kube_admission_forbid(write, "use of " CLIENT_SIGNER
                                        " signer with system:masters group is not allowed");
}

const struct kube_admission_plugin kube_certificate_subject = {
    .name = "CertificateSubjectRestriction",
    .rules = {{REQUESTS, "", KUBE_ON_CREATE}},
    .check = check_subject,
};
