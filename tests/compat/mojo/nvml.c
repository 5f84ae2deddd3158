/* The least of libnvidia-ml.so that MAX asks for when it opens a device: one GPU, nothing runs. */
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int status) {
    (void)status;
    return "error of the stand-in";
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return 0;
}
int nvmlDeviceGetHandleByIndex(unsigned index, void **device) {
    (void)index;
    *device = (void *)1;
    return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    return nvmlDeviceGetHandleByIndex(index, device);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
    (void)device, (void)processes;
    *count = 0;
    return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *later) {
    (void)device;
    *now = *later = 0;
    return 0;
}
