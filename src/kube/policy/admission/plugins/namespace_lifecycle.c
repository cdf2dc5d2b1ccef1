#include "kube/policy/admission/plugins/namespace_lifecycle.h"

#include "codec/json/string.h"
#include "kube/types/object/object.h"

#include <stdio.h>

static bool check(struct kube_admission_write *write)
{
    static const char *const immortal[] = {"default", "kube-system", "kube-public"};
    for (size_t i = 0; i < COUNT_OF(immortal); i++)
        if (slice_is(write->name, immortal[i]))
            return kube_admission_forbid(write, "this namespace may not be deleted");
    return true;
}

const struct kube_admission_plugin kube_namespace_lifecycle = {
    .name = "NamespaceLifecycle",
    .rules = {{"", "namespaces", "", KUBE_ON_DELETE}},
    .check = check,
};

bool kube_namespace_accepts(const struct kube_admission_write *write, struct slice stored)
{
    struct slice namespace = write->namespace;
    char text[192];
    if (!stored.len)
        return kube_fail_not_found(write->status, SLICE_EMPTY, SLICE_LITERAL("namespaces"),
                                   namespace);
    struct kube_object object;
    struct slice phase;
    if (kube_object_parse(stored, &object) != ST_OK ||
        !kube_object_field(&object, SLICE_LITERAL("status.phase"), &phase) ||
        !json_inner_is(phase, SLICE_LITERAL("Terminating")))
        return true;
    namespace.len = size_min(namespace.len, 100);
    (void)kube_admission_forbid(
        write, "unable to create new content in namespace %.*s because it is being terminated",
        SLICE_ARGS(namespace));
    snprintf(text, sizeof(text), "namespace %.*s is being terminated", SLICE_ARGS(namespace));
    kube_status_cause(write->status, "NamespaceTerminating", "metadata.namespace", text);
    return false;
}
