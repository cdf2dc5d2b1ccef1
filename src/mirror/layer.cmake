# The test is the mirror.
cmake_language(DEFER CALL target_link_options mirror_follow_apply_queue_test PRIVATE
    -Wl,--wrap=local_mirror_apply)
