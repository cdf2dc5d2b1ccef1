#include "server/turn_log.h"

#include "base/log/log.h"

static void on_long(void *ctx, const struct turn_report *report)
{
    (void)ctx;
    /* Clients wait for these threads; the others may take long. */
    bool serves_clients =
        strcmp(report->thread, "io") == 0 || strcmp(report->thread, "writer") == 0;
    enum log_level level = serves_clients ? LOG_WARN : LOG_INFO;
    LOG_AT(level, "a turn took long", LOG_TEXT("thread", report->thread),
           LOG_DURATION("took", report->took_ns), LOG_DURATION("cpu", report->cpu_ns),
           LOG_TEXT("work", report->work), LOG_DURATION("work-took", report->work_ns),
           report->peer[0] ? LOG_TEXT("peer", report->peer) : (struct log_field){0},
           report->suppressed ? LOG_U64("suppressed", report->suppressed) : (struct log_field){0});
}

enum status turn_log_new(struct turns **ret_turns)
{
    return turns_new(&(struct turns_options){.clock = clock_system(), .on_long = on_long},
                     ret_turns);
}
