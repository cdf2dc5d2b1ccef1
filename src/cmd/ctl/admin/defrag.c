/* defrag: one endpoint after the other, because a member answers nothing else meanwhile. */
#include "base/clock.h"
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/offline/db_file.h"
#include "codec/pb/rpc.pb.h"

/* 3.4 does not say how long it took. */
static void report(struct ctl *ctl, const char *endpoint, int64_t took_ns, const char *error)
{
    char took[OPTION_DURATION_BYTES];
    option_format_duration(took_ns, took);
    bool short_text = ctl->style == CTL_ETCDCTL_3_4;
    if (error && short_text)
        fprintf(stderr, "Failed to defragment etcd member[%s] (%s)\n", endpoint, error);
    else if (error)
        fprintf(stderr, "Failed to defragment etcd member[%s]. took %s. (%s)\n", endpoint, took,
                error);
    else if (short_text)
        fprintf(ctl->out, "Finished defragmenting etcd member[%s]\n", endpoint);
    else
        fprintf(ctl->out, "Finished defragmenting etcd member[%s]. took %s\n", endpoint, took);
}

static int defragment(struct ctl *ctl, const char *endpoint)
{
    static const struct pb_defragment_request request;
    int code;
    vigil_client *client = ctl_client_of(ctl, endpoint, &code);
    if (!client)
        return code;
    const void *answer;
    vigil_error error;
    int64_t begun_ns = clock_mono_ns(clock_system());
    code = ctl_call_at(ctl, client, METHOD_DEFRAGMENT, &request, &answer, &error);
    report(ctl, endpoint, clock_mono_ns(clock_system()) - begun_ns,
           code == CTL_OK ? NULL : admin_error_text(ctl, &error));
    vigil_client_free(client);
    return code == CTL_OK ? CTL_OK : CTL_ERROR;
}

static int defragment_directory(const char *path)
{
    struct error error;
    AUTO(db_file_closep) struct db_file *file = NULL;
    struct db_file_options options = {
        .data_dir = path,
        .advice = ". To defrag a running etcd instance, omit --data-dir.",
    };
    enum status status = db_file_open(&options, &file, &error);
    if (status == ST_OK)
        status = db_file_rewrite(file, NULL, 0, &error);
    if (status == ST_OK)
        return CTL_OK;
    fprintf(stderr, "Failed to defragment etcd data[%s] (%s)\n", path, error.text);
    return CTL_ERROR;
}

int admin_defrag(struct ctl *ctl)
{
    const struct endpoint_flags *flags = ctl->flags;
    if (flags->data_dir && *flags->data_dir)
        return defragment_directory(flags->data_dir);
    struct ctl_endpoints endpoints;
    int code = CTL_OK;
    if (flags->cluster)
        code = ctl_member_endpoints(ctl, &endpoints);
    else
        endpoints = ctl_endpoints(ctl);
    if (code != CTL_OK)
        return code;
    for (size_t i = 0; i < endpoints.count; i++) {
        if (defragment(ctl, endpoints.texts[i]) != CTL_OK)
            code = CTL_ERROR;
    }
    return code;
}
