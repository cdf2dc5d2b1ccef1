#include "kubeclient/leader/lease_record.h"

#include "base/clock.h"
#include "codec/json/writer.h"

#include <stdio.h>
#include <time.h>
#include <vigil/kube/json.h>

bool lease_record_equal(const struct lease_record *a, const struct lease_record *b)
{
    return strcmp(a->holder, b->holder) == 0 && a->duration_s == b->duration_s &&
           strcmp(a->acquire_time, b->acquire_time) == 0 &&
           strcmp(a->renew_time, b->renew_time) == 0 && a->transitions == b->transitions;
}

/* -- Reading -- */

static void read_text(vigil_bytes spec, const char *key, char *to, size_t size)
{
    vigil_bytes value;
    if (!vigil_json_member(spec, vigil_text(key), &value))
        return;
    char *end = to + size;
    if (!vigil_json_text(value, to, size, NULL) && vigil_json_type_of(value) == VIGIL_JSON_TEXT) {
        /* Too long: not ours, and not empty. */
        memset(to, '?', size - 1);
        end[-1] = '\0';
    }
}

/* An integer of 32 bits, as Kubernetes has them. */
static int64_t read_integer(vigil_bytes spec, const char *key)
{
    vigil_bytes value;
    int64_t number = 0;
    if (!vigil_json_member(spec, vigil_text(key), &value) || !vigil_json_integer(value, &number))
        return 0;
    if (number > INT32_MAX)
        return INT32_MAX;
    return number > 0 ? number : 0;
}

void lease_record_read(struct slice lease, struct lease_record *ret_record)
{
    struct lease_record record = {0};
    vigil_bytes spec;
    if (vigil_json_find(vigil_bytes_of(lease.ptr, lease.len), "spec", &spec)) {
        read_text(spec, "holderIdentity", record.holder, sizeof(record.holder));
        read_text(spec, "acquireTime", record.acquire_time, sizeof(record.acquire_time));
        read_text(spec, "renewTime", record.renew_time, sizeof(record.renew_time));
        record.duration_s = read_integer(spec, "leaseDurationSeconds");
        record.transitions = read_integer(spec, "leaseTransitions");
    }
    *ret_record = record;
}

/* -- Writing -- */

void lease_time(int64_t wall_ns, char to[LEASE_TIME_BYTES])
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t len = strftime(to, LEASE_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(to + len, LEASE_TIME_BYTES - len, ".%06dZ", (int)(wall_ns % NS_PER_S / 1000));
}

static void put_time(struct json_writer *w, const char *key, const char *time)
{
    if (!time[0])
        return;
    json_member_text(w, key, time);
}

static void put_spec(struct json_writer *w, const struct lease_record *record)
{
    json_begin_object(w);
    json_member_text(w, "holderIdentity", record->holder);
    json_member_i64(w, "leaseDurationSeconds", record->duration_s);
    put_time(w, "acquireTime", record->acquire_time);
    put_time(w, "renewTime", record->renew_time);
    json_member_i64(w, "leaseTransitions", record->transitions);
    json_end_object(w);
}

enum status lease_write_new(struct buf *to, const char *name_space, const char *name,
                            const struct lease_record *record)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_text(&w, "apiVersion", "coordination.k8s.io/v1");
    json_member_text(&w, "kind", "Lease");
    json_member_object(&w, "metadata");
    json_member_text(&w, "name", name);
    json_member_text(&w, "namespace", name_space);
    json_end_object(&w);
    json_key(&w, "spec");
    put_spec(&w, record);
    json_end_object(&w);
    return json_writer_finish(&w);
}

enum status lease_write_update(struct buf *to, struct slice lease,
                               const struct lease_record *record)
{
    vigil_bytes json = vigil_bytes_of(lease.ptr, lease.len), key, value;
    if (vigil_json_type_of(json) != VIGIL_JSON_OBJECT)
        return ST_MALFORMED;
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    vigil_json_iterator iterator = vigil_json_iterate(json);
    while (vigil_json_next(&iterator, &key, &value)) {
        char name[32];
        if (!vigil_json_text(key, name, sizeof(name), NULL) || strcmp(name, "spec") == 0)
            continue; /* no field of a Lease has a longer name */
        json_member_raw(&w, name, slice_of(value.data, value.size));
    }
    json_key(&w, "spec");
    put_spec(&w, record);
    json_end_object(&w);
    return json_writer_finish(&w);
}
