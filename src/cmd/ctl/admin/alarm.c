/* alarm list and disarm. */
#include "cmd/ctl/admin/admin.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

static const char *name_of(int32_t alarm, char ret_number[16])
{
    switch (alarm) {
    case PB_ALARM_TYPE_NONE:
        return "NONE";
    case PB_ALARM_TYPE_NOSPACE:
        return "NOSPACE";
    case PB_ALARM_TYPE_CORRUPT:
        return "CORRUPT";
    default:
        snprintf(ret_number, 16, "%" PRId32, alarm);
        return ret_number;
    }
}

/* The text format of protobuf, as 3.7 writes it; gogo's, which 3.4 uses, ends with a space. */
static void write_simple(struct ctl *ctl, const void *response)
{
    const struct pb_alarm_response *alarms = response;
    const char *end = ctl->style == CTL_ETCDCTL_3_4 ? " " : "";
    for (size_t i = 0; i < alarms->alarms_count; i++) {
        const struct pb_alarm_member *alarm = &alarms->alarms[i];
        const char *space = "";
        char number[16];
        if (alarm->member_id) {
            fprintf(ctl->out, "memberID:%" PRIu64, alarm->member_id);
            space = " ";
        }
        if (alarm->alarm)
            fprintf(ctl->out, "%salarm:%s", space, name_of(alarm->alarm, number));
        fprintf(ctl->out, "%s\n", end);
    }
}

static void write_fields(struct ctl *ctl, const void *response)
{
    const struct pb_alarm_response *alarms = response;
    ctl_field_header(ctl, alarms->header);
    for (size_t i = 0; i < alarms->alarms_count; i++) {
        const struct pb_alarm_member *alarm = &alarms->alarms[i];
        char number[16];
        ctl_field_id(ctl, "MemberID", alarm->member_id);
        fprintf(ctl->out, "\"AlarmType\" : %s\n\n", name_of(alarm->alarm, number));
    }
}

static const struct ctl_shape shape = {
    .type = &pb_alarm_response_table,
    .simple = write_simple,
    .fields = write_fields,
};

int admin_alarm_list(struct ctl *ctl)
{
    struct pb_alarm_request request = {.action = PB_ALARM_ACTION_GET};
    return admin_call_and_print(ctl, METHOD_ALARM_LIST, &request, &shape);
}

/* Lowers one alarm, and adds what the server lowered to the result. */
static int disarm(struct ctl *ctl, const struct pb_alarm_member *alarm,
                  struct pb_alarm_response *disarmed, size_t room)
{
    struct pb_alarm_request request = {
        .action = PB_ALARM_ACTION_DEACTIVATE,
        .member_id = alarm->member_id,
        .alarm = alarm->alarm,
    };
    const void *answer;
    int code = ctl_call(ctl, METHOD_ALARM_DISARM, &request, &answer);
    if (code != CTL_OK)
        return code;
    const struct pb_alarm_response *response = answer;
    for (size_t i = 0; i < response->alarms_count && disarmed->alarms_count < room; i++)
        disarmed->alarms[disarmed->alarms_count++] = response->alarms[i];
    return CTL_OK;
}

/* The answer is put together from those for each alarm, and has no header in etcdctl either. */
int admin_alarm_disarm(struct ctl *ctl)
{
    struct pb_alarm_request request = {.action = PB_ALARM_ACTION_GET};
    const void *answer;
    int code = ctl_call(ctl, METHOD_ALARM_LIST, &request, &answer);
    if (code != CTL_OK)
        return code;
    const struct pb_alarm_response *raised = answer;
    struct pb_alarm_response disarmed = {0};
    if (raised->alarms_count)
        disarmed.alarms = arena_calloc(ctl->arena, raised->alarms_count, sizeof(*disarmed.alarms));
    if (raised->alarms_count && !disarmed.alarms)
        return ctl_fail(ctl, CTL_ERROR, "out of memory");
    for (size_t i = 0; i < raised->alarms_count && code == CTL_OK; i++)
        code = disarm(ctl, &raised->alarms[i], &disarmed, raised->alarms_count);
    return code == CTL_OK ? ctl_print(ctl, &shape, &disarmed) : code;
}
