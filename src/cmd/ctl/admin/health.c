/* endpoint health: a read that goes through consensus, and the alarms. */
#include "cmd/ctl/admin/admin.h"
#include "cmd/ctl/admin/endpoint.h"
#include "cmd/ctl/print/go_json.h"
#include "codec/pb/rpc.pb.h"

static const char *alarm_text(int32_t alarm)
{
    switch (alarm) {
    case PB_ALARM_TYPE_NOSPACE:
        return "NOSPACE ";
    case PB_ALARM_TYPE_CORRUPT:
        return "CORRUPT ";
    default:
        return "UNKNOWN ";
    }
}

static void fail(struct asked *asked, const char *text)
{
    asked->response = NULL;
    asked->error.code = VIGIL_OK;
    snprintf(asked->error.text, sizeof(asked->error.text), "%s", text);
}

/* A member that refuses the read because of a permission has decided that with the others, so it
 * is healthy. 3.4 does not look at alarms. */
static void ask_health(struct asked *asked)
{
    static const struct pb_range_request range = {.key = SLICE_LITERAL("health")};
    static const struct pb_alarm_request list = {.action = PB_ALARM_ACTION_GET};
    ask_call(asked, METHOD_RANGE, &range);
    if (asked->error.code == VIGIL_ERROR_PERMISSION_DENIED)
        asked->response = &range; /* anything but NULL */
    if (!asked->response || asked->ctl->style == CTL_ETCDCTL_3_4)
        return;
    int64_t took_ns = asked->took_ns;
    ask_call(asked, METHOD_ALARM_LIST, &list);
    /* The time that is shown is that of the read, as in etcdctl. */
    asked->took_ns = took_ns;
    const struct pb_alarm_response *alarms = asked->response;
    if (alarms) {
        char text[VIGIL_ERROR_TEXT_BYTES] = "Active Alarm(s): ";
        size_t used = strlen(text);
        for (size_t i = 0; i < alarms->alarms_count && used < sizeof(text); i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
                                     alarm_text(alarms->alarms[i].alarm));
        if (alarms->alarms_count)
            fail(asked, text);
    } else {
        fail(asked, "Unable to fetch the alarm list");
    }
}

struct took {
    char text[OPTION_DURATION_BYTES];
};

static struct took took_of(const struct asked *asked)
{
    struct took took = {""};
    option_format_duration(asked->took_ns, took.text);
    return took;
}

/* What this command found itself is not an error of a call. */
static const char *error_of(const struct asked *asked)
{
    if (asked->response)
        return "";
    return asked->error.code == VIGIL_OK ? asked->error.text : ask_error_text(asked);
}

static void health_row(const struct asked *asked, struct endpoint_row *row)
{
    endpoint_cell(row, "%s", asked->endpoint);
    endpoint_cell(row, "%s", asked->response ? "true" : "false");
    endpoint_cell(row, "%s", took_of(asked).text);
    endpoint_cell(row, "%s", error_of(asked));
}

static void health_line(const struct asked *asked)
{
    /* etcdctl 3.4 writes healthy endpoints to standard error, too. */
    bool to_errors = !asked->response || asked->ctl->style == CTL_ETCDCTL_3_4;
    FILE *to = to_errors ? stderr : asked->ctl->out;
    if (asked->response)
        fprintf(to, "%s is healthy: successfully committed proposal: took = %s\n", asked->endpoint,
                took_of(asked).text);
    else
        fprintf(to, "%s is unhealthy: failed to commit proposal: %s\n", asked->endpoint,
                error_of(asked));
}

static void health_fields(const struct asked *asked)
{
    struct ctl *ctl = asked->ctl;
    ctl_field_text(ctl, "Endpoint", slice_from_text(asked->endpoint));
    fprintf(ctl->out, "\"Health\" : %s\n\"Took\" : %s\n\"Error\" : %s\n\n",
            asked->response ? "true" : "false", took_of(asked).text, error_of(asked));
}

static void health_json(const struct asked *asked)
{
    FILE *to = asked->ctl->out;
    fputs("{\"endpoint\":", to);
    go_json_text(to, slice_from_text(asked->endpoint));
    fprintf(to, ",\"health\":%s,\"took\":\"%s\"", asked->response ? "true" : "false",
            took_of(asked).text);
    if (!asked->response) {
        fputs(",\"error\":", to);
        go_json_text(to, slice_from_text(error_of(asked)));
    }
    fputc('}', to);
}

int admin_endpoint_health(struct ctl *ctl)
{
    static const char *const heads[] = {"endpoint", "health", "took", "error"};
    static const struct endpoint_shape shape = {
        .heads = heads,
        .head_count = COUNT_OF(heads),
        .row = health_row,
        .line = health_line,
        .fields = health_fields,
        .json = health_json,
        .shows_errors = true,
    };
    const struct endpoint_flags *flags = ctl->flags;
    AUTO(ask_free) struct asked_list list = {0};
    int code = ask_all(ctl, flags->cluster, ask_health, &list);
    if (code == CTL_OK)
        code = endpoint_print(ctl, &shape, &list);
    for (size_t i = 0; code == CTL_OK && i < list.count; i++) {
        if (!list.items[i].response)
            code = ctl_fail(ctl, CTL_ERROR, "unhealthy cluster");
    }
    return code;
}
