"""Running a compiled kernel on a GPU: arguments, tensor maps, tile schedule, launch, timing."""
