"""Files of images and sounds, as they are sent to others."""
