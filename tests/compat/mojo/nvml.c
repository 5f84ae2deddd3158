/* The least of libnvidia-ml.so that MAX asks for when it opens a device: one GPU, nothing runs.
   HOPPER or BLACKWELL says which. */
#include <string.h>

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
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
#ifdef BLACKWELL
    *major = 10;
#else
    *major = 9;
#endif
    *minor = 0;
    return 0;
}
int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    strncpy(version, "580.65.06", length);
    return 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    (void)device;
#ifdef BLACKWELL
    strncpy(name, "NVIDIA B200", length);
#else
    strncpy(name, "NVIDIA H100 80GB HBM3", length);
#endif
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *total_free_used) {
    (void)device;
    /* with much less, MAX takes everything from one pool, which would be in the recording whole */
    total_free_used[0] = total_free_used[1] = 80ull << 30;
    total_free_used[2] = 0;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons = 0;
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count) {
    (void)device, (void)type, (void)counter;
    *count = 0;
    return 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, char *info) {
    (void)device;
    memset(info, 0, 68);
    strcpy(info, "0000:00:00.0");
    return 0;
}
