#include "load/scale/setup.h"

#include "load/scale/objects.h"

#include <stdio.h>
#include <vigil/kube/call.h>

enum { CONFLICT = 409 };

struct setup {
    vigil_kube *kube; /* owned */
    struct buf text;
    struct error *error;
};

/* Takes the call. */
static enum status run(struct setup *setup, vigil_kube_call *call, const char *what)
{
    enum status status = ST_OK;
    if (vigil_kube_call_run(call) != VIGIL_OK && vigil_kube_call_status(call)->code != CONFLICT)
        status = error_set(setup->error, ST_IO, "creating %s: %s", what,
                           vigil_kube_call_error(call)->text);
    vigil_kube_call_free(call);
    return status;
}

static enum status create(struct setup *setup, const char *group, const char *resource,
                          const char *name_space)
{
    vigil_kube_target target = {
        .group = group, .version = "v1", .resource = resource, .name_space = name_space};
    vigil_bytes object = vigil_bytes_of(setup->text.ptr, setup->text.len);
    return run(setup, vigil_kube_create(setup->kube, &target, object, NULL), resource);
}

static enum status create_simple(struct setup *setup, const char *kind, const char *resource,
                                 const char *name_space, const char *name, const char *rest)
{
    buf_reset(&setup->text, SIZE_MAX);
    TRY(buf_append_format(
        &setup->text, "{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"}%s}",
        kind, name, rest));
    return create(setup, NULL, resource, name_space);
}

static enum status create_namespace(struct setup *setup, unsigned number)
{
    static const char data[] =
        ",\"data\":{\"level\":\"info\",\"file\":\"a few words of settings\"}";
    static const char secret[] = ",\"data\":{\"token\":\"YSBzZWNyZXQgb2Ygc29tZSBieXRlcw==\"}";
    char name[SCALE_NAME_BYTES];
    snprintf(name, sizeof(name), SCALE_PREFIX "%u", number);
    TRY(create_simple(setup, "Namespace", "namespaces", NULL, name, ""));
    TRY(create_simple(setup, "ServiceAccount", "serviceaccounts", name, "default", ""));
    TRY(create_simple(setup, "ConfigMap", "configmaps", name, "kube-root-ca.crt", data));
    TRY(create_simple(setup, "ConfigMap", "configmaps", name, SCALE_CONFIG_MAP, data));
    TRY(create_simple(setup, "Secret", "secrets", name, SCALE_SECRET, secret));
    static const int64_t now = 0;
    vigil_kube_target pods = {.version = "v1", .resource = "pods", .name_space = name};
    vigil_kube_delete_options options = {.size = sizeof(options), .grace_period_s = &now};
    return run(setup, vigil_kube_delete_collection(setup->kube, &pods, &options, NULL), "space");
}

static enum status create_service(struct setup *setup, uint32_t number)
{
    char name_space[SCALE_NAME_BYTES];
    snprintf(name_space, sizeof(name_space), SCALE_PREFIX "%u", number % SCALE_NAMESPACES);
    scale_service_write(&setup->text, number, "", 0);
    TRY(create(setup, NULL, "services", name_space));
    scale_slice_write(&setup->text, number, "", 0);
    return create(setup, "discovery.k8s.io", "endpointslices", name_space);
}

static enum status create_all(struct setup *setup, const struct bench_options *options)
{
    TRY(create_simple(setup, "Namespace", "namespaces", NULL, SCALE_LEASES, ""));
    for (unsigned i = 0; i < SCALE_NAMESPACES; i++)
        TRY(create_namespace(setup, i));
    for (uint32_t i = 0; i < options->services; i++)
        TRY(create_service(setup, i));
    return ST_OK;
}

enum status scale_setup(const struct bench_options *options, const vigil_kube_options *client,
                        struct error *error)
{
    struct setup setup = {.error = error};
    vigil_error why;
    if (vigil_kube_new(client, &setup.kube, &why) != VIGIL_OK)
        return error_set(error, ST_INVALID, "%s", why.text);
    enum status status = create_all(&setup, options);
    vigil_kube_free(setup.kube);
    buf_fini(&setup.text);
    return status;
}
