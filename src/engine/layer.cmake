
# The test is the mirror.
cmake_language(DEFER CALL target_link_options engine_cluster_follow_feeder_test PRIVATE
    -Wl,--wrap=local_mirror_apply)

# Writes that fail.
cmake_language(DEFER CALL target_link_options engine_local_mirror_failure_test PRIVATE
    -Wl,--wrap=file_pwrite)

# Syncs that fail or wait.
cmake_language(DEFER CALL target_link_options engine_local_failure_test PRIVATE -Wl,--wrap=fdatasync)
