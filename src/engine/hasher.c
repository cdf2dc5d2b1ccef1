#include "engine/hasher.h"

#include "base/metric/turn.h"

static void run(struct worker_job *work)
{
    struct hasher_job *job = CONTAINER_OF(work, struct hasher_job, work);
    turn_phase("hashing a password");
    if (job->task == HASHER_CHECK)
        work->status = auth_password_check(job->password, job->hash);
    else
        work->status = auth_password_hash(job->password, job->salt, job->cost, job->made);
}

struct worker *hasher_new(void)
{
    return worker_new("vigil-hasher", HASHER_QUEUE_MAX);
}

enum status hasher_submit(struct worker *hasher, struct hasher_job *job)
{
    job->work.run = run;
    return worker_submit(hasher, &job->work);
}
