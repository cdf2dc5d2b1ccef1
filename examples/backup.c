/*
 * Saves a snapshot of the server to a file, as "etcdctl snapshot save"
 * does. The file gets its name when it is complete and its digest was
 * checked, so a backup that was interrupted leaves none.
 *
 *     ./backup http://127.0.0.1:2379 backup.db
 */
#include <stdio.h>
#include <unistd.h>
#include <vigil/vigil.h>

struct backup {
    FILE *file;
    unsigned long long bytes;
    int failed; /* the file could not be written */
};

static int on_part(vigil_call *call, const vigil_snapshot_part *part,
                   void *user)
{
    struct backup *backup = user;
    vigil_bytes blob = part->blob;
    backup->bytes += blob.size;
    if (fwrite(blob.data, 1, blob.size, backup->file) != blob.size) {
        backup->failed = 1;
        vigil_call_cancel(call); /* no part follows */
    }
    return VIGIL_PART_CONTINUE;
}

static int save(vigil_client *client, struct backup *backup)
{
    vigil_call *call = vigil_snapshot(client, on_part, backup);
    int code = vigil_call_run(call);
    if (backup->failed)
        fprintf(stderr, "the file cannot be written\n");
    else if (code != VIGIL_OK)
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    vigil_call_free(call);
    return code;
}

static int save_as(vigil_client *client, const char *name)
{
    struct backup backup = {NULL, 0, 0};
    char part_name[4096];
    int code, closed;
    snprintf(part_name, sizeof(part_name), "%s.part", name);
    backup.file = fopen(part_name, "wb");
    if (!backup.file) {
        perror(part_name);
        return 1;
    }
    code = save(client, &backup);
    closed =
        fflush(backup.file) == 0 && fsync(fileno(backup.file)) == 0;
    closed = fclose(backup.file) == 0 && closed;
    if (code == VIGIL_OK && closed && rename(part_name, name) == 0) {
        printf("%s has %llu bytes\n", name, backup.bytes);
        return 0;
    }
    remove(part_name);
    return 1;
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    int failed;

    vigil_options_init(&options);
    if (argc > 1)
        options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    failed = save_as(client, argc > 2 ? argv[2] : "backup.db");
    vigil_client_free(client);
    return failed;
}
