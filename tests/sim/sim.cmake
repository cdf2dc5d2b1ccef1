# vigil_sim: the whole server in a simulation (docs/simulation.md). Threads, waiting, time, randomness, the network and
# the disk are replaced when it is linked.
file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/sim/*.c)
add_executable(vigil_sim ${sim_sources} ${CMAKE_SOURCE_DIR}/src/cmd/serve/tier.c)
target_include_directories(vigil_sim PRIVATE ${CMAKE_SOURCE_DIR}/tests/sim)
target_link_libraries(vigil_sim PRIVATE vigil_tier vigil_server vigil_kubeclient vigil_client vigil_simulated)
set(sim_wraps
    clock_system random_seed_system random_secret network_posix
    pthread_create pthread_join pthread_detach pthread_self pthread_setname_np sched_yield
    pthread_cond_broadcast pthread_cond_signal sem_wait sem_post
    waker_wake waker_sleep waker_look lock_take lock_release lock_wait lock_wait_until
    loop_run loop_stop loop_turn
    file_pread file_pwrite file_sync fs_open fs_rename fs_unlink fs_sync_dir backend_lmdb_open backend_commit
    nftw scratch_file_open mirror_file_boot
    record_check local_lease_load_row local_auth_load_row catch_up_begin lessor_next_ns lessor_expired
    crc32c local_lease_away lessor_renew store_sync local_answer_chain local_keeper_stop backend_version_put
    pb_decode
    log_is_short applier_put applier_txn applier_compact range_begin permission_check_user
    mirror_range_start watches_create local_mirror_walk_next local_mirror_walk_is_complete
    cache_remove backfill_source_start upstream_start applier_mirror local_lease_renew_start
    generations_put tier_reflector_received tier_wait_start tier_collection_revision tier_collection_version
    tier_ask_read tier_collection_look tier_rights_changed tier_may kube_refuse
    kube_identity_begin kube_tokens_find fetcher_request tier_event_look tier_reflector_failed)
list(TRANSFORM sim_wraps PREPEND "-Wl,--wrap=")
target_link_options(vigil_sim PRIVATE ${sim_wraps})
