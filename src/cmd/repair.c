#include "cmd/repair.h"

#include "base/options/rows.h"
#include "base/random.h"
#include "cmd/arguments.h"
#include "engine/local/local.h"
#include "engine/local/page_fault.h"
#include "store/repair.h"

#include <inttypes.h>
#include <stdlib.h>

enum { EXIT_DAMAGED = 3, KEYS_SHOWN_MAX = 1000, KEY_BYTES_SHOWN_MAX = 512 };

struct repair_flags {
    const char *data_dir;
    bool accept_loss;
};

static const struct option rows[] = {
    FLAG_TEXT("data-dir", repair_flags, data_dir, "",
              "The data directory. No server may be using it."),
    FLAG_BOOL(
        "accept-loss", repair_flags, accept_loss,
        "Accept the loss, so that the server starts again. Without this flag nothing is changed."),
};

static const struct option_group group = {"Repair", rows, COUNT_OF(rows)};
static const struct option_group *const groups[] = {&group};

const struct options_table repair_table = {
    .program = "vigil repair",
    .summary = "Shows what a damaged data directory has lost, and makes it usable again once the "
               "loss is accepted.",
    .groups = groups,
    .group_count = COUNT_OF(groups),
    .flags_only = true,
    .man_more =
        ".SH WHAT IS LOST\n"
        "A damaged record that is not in the checkpoint yet is cut off, and all records after it: "
        "the store returns to the revision before it. Their bytes are kept beside the segment "
        "in NNN.seg.lost-OFFSET, whole segments as NNN.seg.lost.\n"
        ".PP\n"
        "Of a damaged record that the checkpoint has, only the versions that cannot be read are "
        "lost. The store is rewritten without them, which needs as much space as it has, and "
        "its history is compacted to the newest revision. A key whose newest version is lost does "
        "not exist any more: its older value would be wrong. The damaged files are kept in "
        "log.lost "
        "and meta.lost.\n"
        ".PP\n"
        "A damaged checkpoint (meta/data.mdb) is rebuilt from its intact parts and from the "
        "log, which has every value. Often nothing is lost by that. Otherwise a key is lost whose "
        "newest version in the log may have been deleted since: the report names it. History is "
        "then compacted to the newest revision, so that watches start over. The damaged file is "
        "kept as meta/data.mdb.lost. This may need as much memory as a server with the same "
        "data.\n"
        ".PP\n"
        "FORMAT has a constant text, and is written again if it is damaged or missing.\n"
        ".PP\n"
        "A damaged head of a segment is made again from its second copy or its first record. A "
        "segment that is missing, or of which all of that is damaged and which the checkpoint "
        "needs, can "
        "not be repaired, and neither can a checkpoint and a log that are both damaged: restore a "
        "backup or a snapshot, or copy what can be read with vigil salvage.\n"
        ".SH EXIT STATUS\n"
        ".TP\n0\nNothing is damaged, or the loss was accepted: the server starts.\n"
        ".TP\n1\nThe repair failed; the last line says why.\n"
        ".TP\n2\nA flag is unknown or has an invalid value.\n"
        ".TP\n3\nThere is damage, and nothing was changed.\n"
        ".TP\n74\nThe disk cannot read a part of a file: use vigil salvage.\n",
};

/* -- The report -- */

struct report {
    bool accepted;
    uint64_t shown;
};

void repair_write_key(struct slice key, size_t bytes_max)
{
    putchar('"');
    for (size_t i = 0; i < size_min(key.len, bytes_max); i++) {
        uint8_t byte = key.ptr[i];
        if (byte > ' ' && byte < 0x7f && byte != '"' && byte != '\\')
            putchar(byte);
        else
            printf("\\x%02x", byte);
    }
    fputs(key.len > bytes_max ? "\"…" : "\"", stdout);
}

static void show_lost(void *ctx, const struct store_lost *lost)
{
    struct report *report = ctx;
    if (report->shown == 0)
        printf("Versions of keys that %s lost:\n", report->accepted ? "are" : "would be");
    /* write_report says how many more there were. */
    if (report->shown++ >= KEYS_SHOWN_MAX)
        return;
    printf("  revision %" PRId64 ": %s ", lost->revision, lost->deleted ? "delete" : "put");
    repair_write_key(lost->key, KEY_BYTES_SHOWN_MAX);
    printf("%s%s%s\n", lost->older ? " (an older version; the newest one stays)" : "",
           lost->doubtful ? " (it may have been deleted before: this cannot be determined)" : "",
           lost->unsure ? " (its bytes are damaged: perhaps another key)" : "");
}

static void write_cut(const struct store_repair *found, const char *will)
{
    const struct log_repair *log = &found->log;
    /* Without a seal or mark behind it, no later record is known to have been durable. Then only
     * the damaged one is counted. */
    uint64_t last = log->last_index > log->cut.index ? log->last_index : log->cut.index;
    printf("%016" PRIx64 ".seg, offset %" PRIu64 ": %s\n", log->cut.segment_id, log->cut.offset,
           log->cut.reason);
    printf("%s cut off: log index %" PRIu64 " to %" PRIu64 ", %" PRIu64 " bytes", will,
           log->cut.index, last, log->cut.bytes);
    if (found->first_revision)
        printf(", revision %" PRId64 " to %" PRId64, found->first_revision, found->last_revision);
    printf("\n");
    /* Records behind the damage can often be read, and their changes were listed. The others are
     * only counted. */
    if (last - log->cut.index + 1 > found->records_read)
        printf("of these, %" PRIu64
               " records cannot be read: what they changed is lost and not listed above\n",
               last - log->cut.index + 1 - found->records_read);
    if (log->segments)
        printf("%s set aside: %u segments whose head is damaged\n", will, log->segments);
}

static void write_rest(const struct store_repair *found, const char *will)
{
    const struct log_repair *log = &found->log;
    if (log->passed_to_index)
        printf("%016" PRIx64 ".seg, offset %" PRIu64 ": a record that the checkpoint has is "
               "damaged\n%s read past: log index %" PRIu64 " to %" PRIu64
               "; nothing is cut off by that\n",
               log->passed_segment_id, log->passed_offset, will, log->passed_from_index,
               log->passed_to_index);
    if (found->rewrites) {
        printf("damaged: %" PRIu64 " records that the checkpoint has\n"
               "%s rewritten: the whole store, without what is lost; %s\n",
               found->damaged_records, will,
               found->lost_versions ? "then its history is compacted to the newest revision"
               : found->has_history ? "with its history"
                                    : "no version of a key is lost");
    }
    if (log->heads)
        printf("%s made again: %u damaged heads of segments; nothing is lost by that\n", will,
               log->heads);
    if (log->seals)
        printf("%s rewritten: %u seals of segments\n", will, log->seals);
    if (log->mark)
        printf("%s rewritten: the mark of the log\n", will);
}

static void write_rows(const struct store_rebuild *checkpoint)
{
    if (checkpoint->lost_rows)
        printf("%" PRIu64 " leases, users, roles or alarms are lost\n", checkpoint->lost_rows);
    if (checkpoint->rows_unsure)
        printf("%" PRIu64 " leases, users, roles and alarms are kept unverified, "
               "and others may be lost: check them, and whether authentication is "
               "enabled, before clients connect\n",
               checkpoint->rows);
    if (checkpoint->identity_lost)
        printf("the ids of cluster and member are lost: the next start takes those of its flags\n");
}

static void write_checkpoint(const struct store_repair *found, const char *will)
{
    const struct store_rebuild *checkpoint = &found->checkpoint;
    if (checkpoint->how == REBUILT_NOT)
        return;
    printf("%s\n%s rebuilt: the checkpoint, meta/data.mdb\n", found->checkpoint_error.text, will);
    if (checkpoint->how == REBUILT_AS_IT_WAS)
        printf("nothing is lost: the damage could be corrected, and all checksums match\n");
    if (checkpoint->how == REBUILT_FROM_LOG)
        printf("nothing is lost: the log has every change since the first\n");
    if (checkpoint->how == REBUILT_IN_PART)
        printf("keys: %" PRIu64 " kept, %" PRIu64 " lost; history %s compacted to revision %" PRId64
               "\n",
               checkpoint->kept_versions, checkpoint->lost_versions, will, checkpoint->revision);
    write_rows(checkpoint);
    if (*found->checkpoint_saved)
        printf("the damaged checkpoint is kept in %s\n", found->checkpoint_saved);
}

static void write_report(const struct store_repair *found, const struct repair_flags *flags)
{
    const char *will = flags->accept_loss ? "was" : "would be";
    if (found->lost_versions > KEYS_SHOWN_MAX)
        printf("  … and %" PRIu64 " more\n", found->lost_versions - KEYS_SHOWN_MAX);
    write_checkpoint(found, will);
    if (found->log.cut.reason)
        write_cut(found, will);
    write_rest(found, will);
    if (found->rewrites && flags->accept_loss)
        printf(
            "the damaged files are kept in log.lost and meta.lost; remove them when they are not "
            "needed any more\n");
    if (*found->log.saved_path)
        printf("what was cut off is kept in %s\n", found->log.saved_path);
    if (!flags->accept_loss)
        printf("Nothing was changed. A backup or a snapshot may have more. To accept this loss:\n"
               "  vigil repair --data-dir %s --accept-loss\n",
               flags->data_dir);
    if (!flags->accept_loss && found->log.cut.reason)
        printf("To keep what was written after the damage as well, in a new directory:\n"
               "  vigil salvage %s --to NEW\n",
               flags->data_dir);
}

int repair_main(int count, char **args)
{
    struct repair_flags flags = {0};
    struct words words = {.table = &repair_table, .config = &flags};
    int exit_status = words_read(&words, count - 1, args + 1);
    if (exit_status >= 0)
        return exit_status;
    if (!*flags.data_dir)
        return words_refuse(&words, "say with --data-dir which data directory to repair");
    /* The log is mapped into memory. Without this, a part of the disk that cannot be read would end
     * the process with SIGBUS and no explanation. */
    page_fault_report("vigil repair", flags.data_dir, false);
    struct report report = {.accepted = flags.accept_loss};
    struct store_repair found;
    struct error error = {0};
    enum status status = store_repair(
        &(struct store_repair_options){
            .fs = fs_posix(),
            .dir = flags.data_dir,
            .checkpoint_map_bytes = engine_local_map_bytes(),
            .accept = flags.accept_loss,
            .salt = random_seed_system(),
            .lost = show_lost,
            .ctx = &report,
        },
        &found, &error);
    if (status != ST_OK) {
        fprintf(stderr, "vigil repair: %s\n", error.text);
        if (status == ST_DAMAGED)
            fprintf(stderr,
                    "This cannot be repaired. Restore a backup or a snapshot, or copy what can be "
                    "read into a new directory:\n  vigil salvage %s --to NEW\n",
                    flags.data_dir);
        return EXIT_FAILURE;
    }
    if (found.format != DATADIR_FORMAT_INTACT) {
        printf("%s/FORMAT is %s\n%s written again: its text is always the same\n", flags.data_dir,
               found.format == DATADIR_FORMAT_MISSING ? "missing" : "damaged",
               flags.accept_loss ? "was" : "would be");
        if (!flags.accept_loss)
            printf("The rest is examined when FORMAT is there. Nothing is lost by this:\n"
                   "  vigil repair --data-dir %s --accept-loss\n",
                   flags.data_dir);
        if (!flags.accept_loss)
            return EXIT_DAMAGED;
    }
    /* A FORMAT that was written again does not count here: it was reported above, and there is no
     * loss to list. */
    if (!found.log.damaged && found.checkpoint.how == REBUILT_NOT && !found.rewrites) {
        printf("nothing is damaged\n");
        return EXIT_SUCCESS;
    }
    write_report(&found, &flags);
    return flags.accept_loss ? EXIT_SUCCESS : EXIT_DAMAGED;
}
