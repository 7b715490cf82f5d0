"""Administration of whole queue managers: directories, settings, create and delete."""
